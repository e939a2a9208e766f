# SPDX-License-Identifier: BSD-3-Clause
"""Reductions of rows that are converted several at a time, and where the best of a row lies."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from case import BF16, F16, F32, F64, I8, I16, I32, I64, U8
from harness import PLUGIN, Out

aten = torch.ops.aten
SHAPES = [(3, 5, 7), (2, 3, 128), (70, 130, 3), (3, 300, 9), (2, 2, 511), (2, 5, 513), (1, 3, 1025)]
EXACT = dict.fromkeys((I64, I32, I16, I8, U8), 0.0)
TOLERANCES = {F16: 2e-3, BF16: 2e-2, F32: 1e-5, F64: 1e-12} | EXACT


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [F16, BF16, I32, I8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_folds(shape: tuple[int, ...], dtype: torch.dtype, threads: int) -> None:
    torch.manual_seed(0)
    x = (torch.rand(shape) * 2 + 0.5).to(dtype)
    for dims, keep in product(([0], [1], [2], [0, 1], [0, 2], [1, 2], []), (False, True)):
        calls = {"aten::sum.IntList_out": (aten.sum.dim_IntList, (dims, keep, None))}
        calls["aten::amax.out"] = (aten.amax.default, (dims, keep))
        if dtype.is_floating_point:
            calls["aten::mean.out"] = (aten.mean.dim, (dims, keep, None))
        for name, (op, args) in calls.items():
            wide = x.double() if dtype.is_floating_point else x
            expected = op(wide, dims, keep)
            made = dtype if dtype.is_floating_point else expected.dtype
            out = Out(list(expected.shape), made)
            (actual,) = PLUGIN.call(name, x, *args, out, threads=threads)
            tolerance = TOLERANCES[dtype]
            torch.testing.assert_close(actual, expected.to(made), rtol=tolerance, atol=0)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("least", [False, True])
def test_first_best_of_a_row(dtype: torch.dtype, least: bool) -> None:
    torch.manual_seed(0)
    name = "min" if least else "max"
    for length, kind in product((1, 7, 8, 17, 128, 200, 1024, 1030, 2100), ("few", "many", "nan")):
        x = (torch.randn(5, length) * (1 if kind == "few" else 30)).to(dtype)
        if kind == "nan" and dtype.is_floating_point:
            x[::2, length // 2 :] = torch.nan
            x[1, 0] = torch.nan
        for given, dim in ((x, 1), (x.t().contiguous(), 0)):
            best = given.amin(dim, True) if least else given.amax(dim, True)
            places = ((given == best) | (given != given)).to(I8).argmax(dim)
            (actual,) = PLUGIN.call(f"aten::arg{name}.out", given, dim, False, Out([5], I64))
            assert torch.equal(actual, places), (length, kind, dim)
            outs = Out([5], dtype), Out([5], I64)
            values, indices = PLUGIN.call(f"aten::{name}.dim_{name}", given, dim, False, *outs)[-2:]
            assert torch.equal(indices, places)
            torch.testing.assert_close(values, best.squeeze(dim), rtol=0, atol=0, equal_nan=True)
