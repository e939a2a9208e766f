# SPDX-License-Identifier: BSD-3-Clause
"""Operands that are repeated along rows too short for a call each, and along longer ones."""

from __future__ import annotations

import random
from itertools import product

import pytest
import torch
from case import F16, F32, F64, I32
from harness import PLUGIN, Out

aten = torch.ops.aten
OPERATORS = {
    "aten::mul.out": aten.mul.Tensor,
    "aten::div.out": aten.div.Tensor,
    "aten::maximum.out": aten.maximum.default,
    "aten::pow.Tensor_Tensor_out": aten.pow.Tensor_Tensor,
    "aten::atan2.out": aten.atan2.default,
    "aten::le.Tensor_out": aten.le.Tensor,
    "aten::clamp.Tensor_out": aten.clamp.Tensor,
}
INNER = (1, 2, 3, 7, 16, 33, 49, 95, 96, 97, 200, 1024, 1025)


def repeated(source: random.Random, sizes: list[int]) -> list[int]:
    """Some dimensions of 1, and perhaps the first one left out."""
    kept = [size if source.random() < 0.6 else 1 for size in sizes]
    return kept[source.choice([0, 0, 1]) :]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", OPERATORS)
def test_rows(name: str, threads: int) -> None:
    source, op = random.Random(name), OPERATORS[name]
    torch.manual_seed(0)
    for inner, outer in product(INNER, (1, 2, 21, 300)):
        sizes = [source.choice([1, 3]), outer, inner]
        dtypes = [source.choice([F32, F32, F32, I32, F64, F16]) for _ in op._schema.arguments]
        operands = [(torch.rand(repeated(source, sizes)) * 8 + 1).to(dtype) for dtype in dtypes]
        expected = op(*operands)
        out = Out(list(expected.shape), expected.dtype)
        (actual,) = PLUGIN.call(name, *operands, out, threads=threads)
        tolerance = 2e-3 if expected.dtype is F16 else 2e-6
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
