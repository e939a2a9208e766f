# SPDX-License-Identifier: BSD-3-Clause
"""Loops of integers as they are, and of float64 in vectors, at their edges, next to eager."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from harness import PLUGIN, Out

aten = torch.ops.aten
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
SHAPES = [((3, 37), (3, 37)), ((2, 5, 19), (19,)), ((4, 1), (1, 33)), ((65,), ()), ((0, 3), (3,))]
BINARY = {
    "mul.out": (aten.mul.Tensor, ()),
    "add.out": (aten.add.Tensor, (1,)),
    "sub.out": (aten.sub.Tensor, (1,)),
    "maximum.out": (aten.maximum, ()),
    "minimum.out": (aten.minimum, ()),
    **{f"bitwise_{n}.Tensor_out": (getattr(aten, f"bitwise_{n}").Tensor, ())
       for n in ("and", "or", "xor")},
    **{f"{n}.Tensor_out": (getattr(aten, n).Tensor, ())
       for n in ("eq", "ne", "lt", "le", "gt", "ge")},
}  # fmt: skip


def whole(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Return numbers of the whole range, its ends and 0 among them."""
    limits = torch.iinfo(dtype)
    numbers = torch.randint(limits.min, limits.max, shape).to(dtype)
    ends = torch.tensor([limits.min, limits.max, 0], dtype=dtype)
    some = torch.rand(shape) < 0.2
    return torch.where(some, ends[torch.randint(0, 3, shape)], numbers)


def check(kernel: str, expected: torch.Tensor, *arguments: Any, close: bool = False) -> None:
    (actual,) = PLUGIN.call(
        f"aten::{kernel}", *arguments, Out(list(expected.shape), expected.dtype)
    )
    if close:
        torch.testing.assert_close(actual, expected, rtol=4e-15, atol=1e-300, equal_nan=True)
    else:
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("kernel", BINARY)
def test_pairs_of_integers(kernel: str, dtype: torch.dtype) -> None:
    eager, rest = BINARY[kernel]
    for shapes in SHAPES:
        a, b = (whole(dtype, shape) for shape in shapes)
        check(kernel, eager(a, b), a, b, *rest)
        check(kernel, eager(b, a), b, a, *rest)
    a, b = whole(dtype, (7, 9)), whole(torch.int16, (7, 9))
    check(kernel, eager(a, b), a, b, *rest)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_functions_of_integers(dtype: torch.dtype) -> None:
    x = whole(dtype, (5, 67))
    for name in ("neg", "abs", "relu"):
        check(f"{name}.out", getattr(aten, name)(x), x)
    for low, high in ((3, 50), (None, 7), (2, None), (7, 2), (0, 127)):
        check("clamp.out", aten.clamp(x, low, high), x, low, high)
    for dims in ([1], [0], []):
        check("amax.out", aten.amax(x, dims), x, dims, False)
        check("amin.out", aten.amin(x, dims), x, dims, False)
        check("sum.IntList_out", aten.sum.dim_IntList(x, dims), x, dims, False, None)


@pytest.mark.parametrize("size", [1, 3, 8, 17, 130])
def test_lines_of_float64(size: int) -> None:
    x = torch.randn(5, size, dtype=torch.float64) * 30
    w = torch.randn(size, dtype=torch.float64)
    for name in ("exp", "tanh", "erf", "sigmoid"):
        check(f"{name}.out", getattr(aten, name)(x), x, close=True)
    check("_softmax.out", x.softmax(1), x, 1, False, close=True)
    logs = x.log_softmax(1)
    (actual,) = PLUGIN.call("aten::_log_softmax.out", x, 1, False, Out([5, size], x.dtype))
    torch.testing.assert_close(actual, logs, rtol=1e-14, atol=1e-14)
    (actual,) = PLUGIN.call("aten::sum.IntList_out", x, [1], False, None, Out([5], x.dtype))
    torch.testing.assert_close(actual, x.sum(1), rtol=1e-13, atol=1e-12)
    for weight in (w, None):
        for bias in (w, None):
            norm = aten.native_layer_norm(x, [size], weight, bias, 1e-5)
            outs = [Out(list(t.shape), t.dtype) for t in norm]
            found = PLUGIN.call("aten::native_layer_norm.out", x, [size], weight, bias, 1e-5, *outs)
            torch.testing.assert_close(found, list(norm), rtol=1e-11, atol=1e-11)
    for column in (0, size // 2, size - 1):
        x[2, column], x[3, column] = math.nan, -math.inf
        check("amax.out", aten.amax(x, [1]), x, [1], False, close=True)
        check("amin.out", aten.amin(x, [1]), x, [1], False, close=True)
        check("_softmax.out", x.softmax(1), x, 1, False, close=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rounding_keeps_signs_and_the_unusual(dtype: torch.dtype) -> None:
    near = torch.tensor(
        [0.0, 0.49, 0.5, 0.51, 1.0, 1.5, 2.5, 3.49, 8388607.5, 8388609, 4.5e15, 1e300]
    )
    unusual = torch.tensor([math.inf, math.nan, 5e-324, 1e-40, 4503599627370495.5])
    x = torch.cat([near, unusual, torch.randn(300) * 10]).double()
    x = torch.cat([x, -x]).to(dtype)
    for name in ("floor", "ceil", "round", "trunc", "neg", "abs"):
        (actual,) = PLUGIN.call(f"aten::{name}.out", x, Out(list(x.shape), dtype))
        expected = getattr(aten, name)(x)
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        known = ~expected.isnan()
        assert torch.equal(actual.signbit()[known], expected.signbit()[known]), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["neg", "abs", "relu"])
def test_bits_of_every_number(name: str, dtype: torch.dtype) -> None:
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    expected = getattr(aten, name)(x)
    (actual,) = PLUGIN.call(f"aten::{name}.out", x, Out([2**16], dtype))
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
