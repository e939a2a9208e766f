# SPDX-License-Identifier: BSD-3-Clause
"""Every family on channels-last tensors: OpInfo's arguments on samples made four-dimensional."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from case import Case
from cases import elementwise, index, reduce, shape
from intercept import Intercept
from torch.utils._pytree import tree_map_only

SHAPE = (2, 4, 6, 8)
CASES = [*elementwise.CASES, *reduce.CASES, *shape.CASES, *index.CASES]
# Operators without an input, with an input of fixed rank, or whose arguments name its shape
# (test_movement has these).
UNSUITED = {
    *("arange", "empty", "full", "ones", "scalar_tensor", "zeros"),
    *("t_copy", "nn.functional.embedding"),
    *("split_with_sizes", "split_with_sizes_copy", "select_scatter", "view_copy", "reshape"),
    *("expand_copy", "index_put", "index_select"),
}
ENOUGH = 2


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """Repeat the elements until they fill SHAPE; they stay in the domain of the operator."""
    count = torch.Size(SHAPE).numel()
    flat = tensor.flatten().repeat(count // tensor.numel() + 1)[:count]
    return flat.reshape(SHAPE).contiguous(memory_format=torch.channels_last)


def widened(case: Case) -> Iterator[tuple[Any, Any, Any]]:
    """Yield samples with all tensors of the input's shape widened."""
    for sample in case.samples_of(case.dtypes[0]):
        parts = (sample.input, sample.args, sample.kwargs)
        shapes: set[torch.Size] = set()
        tree_map_only(torch.Tensor, lambda t, shapes=shapes: shapes.add(t.shape), parts)
        if len(shapes) == 1 and 0 not in next(iter(shapes)):
            yield tree_map_only(torch.Tensor, widen, parts)


def accepts(case: Case, parts: tuple[Any, Any, Any]) -> bool:
    try:
        case.info.op(parts[0], *parts[1], **parts[2])
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False
    return True


def compared(case: Case) -> int:
    """Compare a few samples with eager; return how many."""
    count = 0
    for parts in widened(case):
        if not accepts(case, parts):
            continue
        with Intercept(case.tol) as intercept:
            case.info.op(parts[0], *parts[1], **parts[2])
        count += bool(intercept.reached)
        if count == ENOUGH:
            break
    return count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.op not in UNSUITED and (c.op, c.variant) != ("split", "list_args")],
    ids=lambda case: f"{case.op}{case.variant and '.'}{case.variant}",
)
def test_channels_last(case: Case) -> None:
    assert compared(case), "no sample of this operator can be made four-dimensional"
