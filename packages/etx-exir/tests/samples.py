# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own samples, one a number: an operator, a dtype and arguments, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64, torch.uint8)
CONSIDERED = 20
TIED = ("topk", "sort", "msort", "argsort", "kthvalue", "median", "nanmedian", "mode")
"""Operators whose indices are open where elements are equal."""


class Sample(NamedTuple):
    """A call of an operator; `inputs` are its tensors, `call` takes them."""

    name: str
    call: Callable[..., Any]
    inputs: tuple[torch.Tensor, ...]


@cache
def pairs() -> list[tuple[Any, torch.dtype]]:
    """Return what may be drawn: an OpInfo and a dtype that it takes."""
    return [(op, dtype) for op in op_db for dtype in DTYPES if dtype in op.dtypes]


def drawn_sample(seed: int, number: int) -> Sample | None:
    """Return a sample, None where the operator has none of that dtype."""
    draw = random.Random(f"{seed} {number}")
    op, dtype = draw.choice(pairs())
    torch.default_generator.manual_seed(number)
    with torch.no_grad():
        samples = op.sample_inputs_func(op, "cpu", dtype, False)
        found = list(islice(samples, CONSIDERED))
        if hasattr(samples, "close"):
            samples.close()
    if not found:
        return None
    sample = draw.choice(found)
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    inputs = tuple(x.detach().clone() for x in leaves if isinstance(x, torch.Tensor))

    def call(*tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        filled = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        first, args, kwargs = tree_unflatten(filled, spec)
        result = op.op(first, *args, **kwargs)
        return result[0] if op.name in TIED and isinstance(result, tuple) else result

    return Sample(f"{op.formatted_name} {dtype} {sample.summary()}", call, inputs)
