# SPDX-License-Identifier: BSD-3-Clause
"""Functions of single numbers over all there are of 16 bits, and over the range of wider ones."""

from __future__ import annotations

import pytest
import torch
from case import BF16, F16, F32, F64
from harness import PLUGIN, Out

EVERY = 65537  # of 2^32 floats
aten = torch.ops.aten


def numbers(dtype: torch.dtype) -> torch.Tensor:
    """Return all of 16 bits, or every so many of all bits: NaNs and infinities among them."""
    if dtype.itemsize == 2:
        return torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    floats = torch.arange(-(2**31), 2**31, EVERY).to(torch.int32).view(F32)
    ends = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, -0.0, 0.5, -0.5, 2.5, 1e6, 2**20])
    x = torch.cat([floats, ends, ends.nextafter(torch.tensor(torch.inf))])
    return x if dtype is F32 else torch.cat([x.double() * 1.1, ends.double(), x.double() * 1e200])


def call(name: str, x: torch.Tensor) -> torch.Tensor:
    actual: torch.Tensor = PLUGIN.call(f"aten::{name}.out", x, Out(list(x.shape), x.dtype))[-1]
    return actual


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16])
@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc"])
def test_whole_numbers_are_those_of_eager(name: str, dtype: torch.dtype) -> None:
    x = numbers(dtype)
    for part in (x, x[1:-4], x[:3], x[: len(x) // 6 * 6].view(-1, 6).t()):
        actual, expected = call(name, part), getattr(aten, name)(part)
        nan = part.isnan()
        assert torch.equal(actual.isnan(), nan)
        assert torch.equal(actual[~nan], expected[~nan])
        assert torch.equal(actual[~nan].signbit(), expected[~nan].signbit())


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_of_the_whole_range(name: str, dtype: torch.dtype) -> None:
    """Numbers of up to 32 bits are rounded once; those beyond 2^20 are those of libm."""
    x = numbers(dtype)
    actual, exact = call(name, x), getattr(aten, name)(x.double())
    nan = exact.isnan()
    assert torch.equal(actual.isnan(), nan)
    if name == "sin":
        assert torch.equal(actual[~nan].signbit(), exact[~nan].signbit())
    actual, exact, near = actual[~nan], exact[~nan], x[~nan].abs() <= 2**20
    nearest = exact.abs().to(dtype)
    step = (nearest.nextafter(torch.tensor(torch.inf, dtype=dtype)) - nearest).double()
    error = (actual.double() - exact).abs() / step
    most = 5.0 if dtype is F64 else 0.51
    assert error[near].max() <= most
    assert error[~near].numel() == 0 or error[~near].max() <= max(most, 1.0)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_of_parts_are_those_of_all(name: str) -> None:
    """Also of tensors whose elements are not neighbours, and of integers."""
    x = numbers(F32)[::97].contiguous()
    all_of_them = call(name, x)
    for n in (1, 2, 3, 5, 8, 9, 17):
        torch.testing.assert_close(
            call(name, x[:n]), all_of_them[:n], rtol=0, atol=0, equal_nan=True
        )
    table = x[: len(x) // 6 * 6].view(-1, 6).t()
    flat = all_of_them[: table.numel()].view(-1, 6).t()
    torch.testing.assert_close(call(name, table), flat, rtol=0, atol=0, equal_nan=True)
    whole = torch.arange(-300, 300)
    (actual,) = PLUGIN.call(f"aten::{name}.out", whole, Out([600], F32))[-1:]
    torch.testing.assert_close(actual, getattr(aten, name)(whole.double()).float())
