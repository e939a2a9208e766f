# SPDX-License-Identifier: BSD-3-Clause
"""Attention, as support/attention_reference.py registers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from attention_reference import define_operator
from case import BF16, F16, F32, Case
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DEFINED = define_operator()
SIZES = (  # batch, rows, keys, width, values
    (2, 5, 7, 8, 8),
    (3, 1, 40, 64, 64),
    (1, 33, 65, 16, 5),
    (4, 70, 70, 24, 33),
    (2, 3, 1, 1, 1),
    (1, 400, 300, 32, 96),
    (2, 2, 1500, 48, 40),
    (2, 4, 0, 3, 3),
    (2, 0, 4, 3, 3),
)


def hidden(*shape: int) -> Tensor:
    """Return 0 and -inf; of each row the first key is seen."""
    mask = torch.where(torch.rand(shape) < 0.5, 0.0, -torch.inf)
    if shape[-1]:
        mask[..., 0] = 0
    return mask


def drawn(info: Any, device: Any, dtype: Any, requires_grad: bool, **k: Any) -> Iterator[Any]:
    torch.manual_seed(0)
    for batch, rows, keys, width, values in SIZES:
        operands = (
            torch.randn(batch, rows, width, dtype=dtype),
            torch.randn(batch, keys, width, dtype=dtype),
            torch.randn(batch, keys, values, dtype=dtype),
        )
        yield SampleInput(*operands, None, [], width**-0.5, False)
        yield SampleInput(*operands, None, [], 0.3, True)
        yield SampleInput(*operands, torch.randn(rows, keys), [], 1.0, False)
        yield SampleInput(*operands, hidden(batch, 1, keys), [], -0.2, False)
        padded = hidden(batch, 1, 1, keys) == 0
        yield SampleInput(*operands, padded, [batch, 1, rows, keys], 0.2, False)
        grouped = [batch, rows, 1, keys]
        yield SampleInput(*operands, hidden(1, rows, 1, keys) == 0, grouped, 0.2, False)
        last = torch.arange(keys) < max(keys // 3, 1)
        yield SampleInput(*operands, last, [], 0.2, False)
        yield SampleInput(*operands, torch.where(last, 0.0, -torch.inf).flip(0), [], 0.2, True)
        lowest = torch.finfo(torch.float32).min
        some = torch.where(last & (torch.rand(batch, rows, keys) < 0.7), 0.5, lowest)
        yield SampleInput(*operands, some, [], 0.2, False)
        none = torch.full((batch, 1, keys), lowest)
        none[..., : keys // 4] = -torch.inf
        yield SampleInput(*operands, none, [], 0.2, False)


INFO = OpInfo(
    "etx.attention",
    op=torch.ops.etx.attention,
    dtypes={F32, F16, BF16},
    sample_inputs_func=drawn,
)
CASES = [
    Case("etx.attention", dtypes=(dtype,), tol=tol, samples=99, own=INFO)
    for dtype, tol in ((F32, 2e-5), (F16, 2e-3), (BF16, 1.6e-2))
]
