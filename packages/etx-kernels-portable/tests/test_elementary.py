# SPDX-License-Identifier: BSD-3-Clause
"""Functions of single numbers over all there are of 16 bits, and over the range of wider ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from case import BF16, F16, F32, F64, I8, I16, I32, I64, U8
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


def ends(dtype: torch.dtype, *sizes: int) -> torch.Tensor:
    """Return small numbers, the ends of the dtype's range and, of floats, NaNs and infinities."""
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    low = 0 if info.min == 0 else -9
    x = torch.randint(low, 9, sizes).to(dtype)
    chosen = torch.rand(sizes)
    x[chosen < 0.02], x[chosen > 0.98] = info.min, info.max
    if dtype.is_floating_point:
        x[(chosen > 0.5) & (chosen < 0.51)] = torch.nan
        x[(chosen > 0.6) & (chosen < 0.61)] = -torch.inf
    return x


def parts(x: torch.Tensor) -> list[torch.Tensor]:
    """Return pieces of odd lengths and one whose elements are not neighbours."""
    return [x, *(x.flatten()[1 : n + 1] for n in (1, 3, 7, 8, 9, 17, 31, 67)), x.t()]


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16, I64, I32, I16, I8, U8])
def test_extremes_are_those_of_eager(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    first, second = ends(dtype, 29, 67), ends(dtype, 29, 67)
    for a, b in zip(parts(first), parts(second), strict=True):
        for name, expected, args in (
            ("relu.out", a.relu(), (a,)),
            ("abs.out", a.abs(), (a,)),
            ("clamp.out", a.clamp(1, 5), (a, 1, 5)),
            ("clamp.out", a.clamp(min=3), (a, 3, None)),
            ("maximum.out", a.maximum(b), (a, b)),
            ("minimum.out", a.minimum(b), (a, b)),
            ("maximum.out", a.maximum(b[:1]), (a, b[:1])),
            ("amax.out", a.amax(-1), (a, [-1], False)),
            ("amin.out", a.amin(-1), (a, [-1], False)),
            ("amax.out", a.amax(0), (a, [0], False)),
            ("amin.out", a.amin(), (a, [], False)),
        ):
            actual = PLUGIN.call(f"aten::{name}", *args, Out(list(expected.shape), dtype))[-1]
            torch.testing.assert_close(
                actual, expected, rtol=0, atol=0, equal_nan=True, msg=f"{name} {a.shape}"
            )


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16, I64, I32, I16, I8, U8])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts_of_many_are_those_of_eager(dtype: torch.dtype, descending: bool) -> None:
    """Stable, with NaN above all numbers."""
    torch.manual_seed(0)
    for x in (ends(dtype, 3, 95), ends(dtype, 3, 96), ends(dtype, 3, 97), ends(dtype, 2, 1999),
              torch.randn(2, 500).mul(50).to(dtype), torch.full((1, 300), 7, dtype=dtype),
              ends(dtype, 300, 3).t(), ends(dtype, 300, 3)):  # fmt: skip
        for dim in (0, 1):
            outs = Out(list(x.shape), dtype), Out(list(x.shape), I64)
            got = PLUGIN.call("aten::sort.values", x, dim, descending, *outs)[-2:]
            want = torch.sort(x, dim=dim, descending=descending, stable=True)
            for actual, expected in zip(got, want, strict=True):
                torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
            if x.shape[dim] < 64:
                continue
            for count in (3, 8, 30):
                few = [count if d == dim else size for d, size in enumerate(x.shape)]
                outs = Out(few, dtype), Out(few, I64)
                got = PLUGIN.call("aten::topk.values", x, count, dim, descending, True, *outs)[-2:]
                for actual, expected in zip(got, want, strict=True):
                    first = expected.narrow(dim, 0, count)
                    torch.testing.assert_close(actual, first, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16, I64, I32, I16, I8, U8])
def test_running_sums_of_every_length(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for length in (*range(1, 12), 255, 256, 257, 1001):
        x = torch.randint(0, 9, (3, length)).to(dtype)
        for part, dim in ((x, 1), (x.t(), 0), (x, 0)):
            expected = part.cumsum(dim)
            out = Out(list(part.shape), expected.dtype)
            actual = PLUGIN.call("aten::cumsum.out", part, dim, None, out)[-1]
            torch.testing.assert_close(actual, expected)
    if not dtype.is_floating_point:
        return
    x = torch.tensor([1.0, torch.inf, 2.0, 3.0, -torch.inf, 1.0, torch.nan, 2.0], dtype=dtype)
    for part in (x, x[:6], x[2:], x.flip(0)):
        actual = PLUGIN.call("aten::cumsum.out", part, 0, None, Out(list(part.shape), dtype))[-1]
        torch.testing.assert_close(actual, part.cumsum(0), equal_nan=True)
    if dtype is BF16:
        return  # eager has sums in float32, which overflow
    x = torch.tensor([torch.finfo(dtype).max] * 2 + [-torch.finfo(dtype).max] * 3, dtype=dtype)
    actual = PLUGIN.call("aten::cumsum.out", x, 0, None, Out([5], dtype))[-1]
    torch.testing.assert_close(actual, x.cumsum(0))


IN_DOUBLE = [
    "acos",
    "asin",
    "atan",
    "atanh",
    "cosh",
    "erfc",
    "log10",
    "log1p",
    "log2",
    "sinh",
    "tan",
]


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("name", IN_DOUBLE)
def test_functions_of_floats_over_the_whole_range(name: str, dtype: torch.dtype) -> None:
    x = numbers(dtype)
    actual, exact = call(name, x), getattr(aten, name)(x.double())
    for n in (1, 15, 17, 257):
        torch.testing.assert_close(call(name, x[:n]), actual[:n], rtol=0, atol=0, equal_nan=True)
    assert torch.equal(actual.isnan(), exact.isnan())
    assert torch.equal(actual == 0, exact.to(dtype) == 0)
    assert torch.equal(actual.isinf(), exact.to(dtype).isinf())
    known = exact.to(dtype).isfinite()
    actual, exact = actual[known], exact[known]
    assert torch.equal(actual.signbit(), exact.signbit())
    nearest = exact.abs().to(dtype)
    step = (nearest.nextafter(torch.tensor(torch.inf, dtype=dtype)) - nearest).double()
    error = (actual.double() - exact).abs() / step
    assert error[step.isfinite()].max() <= (2.0 if dtype is F32 else 0.501)


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pairs of numbers of all sizes, of like ones, and of whole ones."""
    torch.manual_seed(0)
    a, b = (numbers(dtype)[torch.randperm(len(numbers(dtype)))[:8000]] for _ in range(2))
    like = a * (torch.randint(-999, 999, [8000]) / 16).to(dtype)
    whole = [torch.randint(-300, 300, [8000]).to(dtype) for _ in range(2)]
    ends = torch.tensor([0.0, -0.0, 1.0, -1.0, 3.0, torch.inf, -torch.inf, torch.nan, 1e-45, 1e38])
    ends = ends.to(dtype)
    return (
        torch.cat([a, like, like * b, whole[0], ends.repeat_interleave(10)]),
        torch.cat([b, a, b, whole[1], ends.repeat(10)]),
    )


def rest(name: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return what libm gives, by steps of float32: eager has NaN where a / b is beyond float32."""
    p, q = (x.double().numpy() for x in torch.broadcast_tensors(a, b))
    with np.errstate(all="ignore"):
        left = torch.from_numpy(np.fmod(p, q)).float()
    if name == "remainder":
        left = torch.where((left != 0) & ((left < 0) != (b < 0)), left + b, left)
    return left.to(a.dtype)


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor", "trunc", "atan2"])
def test_rests_are_exact_and_angles_of_all_sides(name: str, dtype: torch.dtype) -> None:
    """Also where one divisor serves many numbers, and of parts of vectors."""
    a, b = pairs(dtype)

    def both(p: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = Out(list(p.shape), dtype)
        if name in ("floor", "trunc"):
            expected = aten.div(p, q, rounding_mode=name)
            return PLUGIN.call("aten::div.out_mode", p, q, name, out)[-1], expected
        if name == "atan2":
            angle = aten.atan2(p.double(), q.double()).to(dtype)
            return PLUGIN.call("aten::atan2.out", p, q, out)[-1], angle
        return PLUGIN.call(f"aten::{name}.Tensor_out", p, q, out)[-1], rest(name, p, q)

    for p, q in [(a, b), (a[:300], b[:1]), (a[-100:], b[-100:]), (a[:7], b[:7])]:
        actual, expected = both(p, q)
        step = torch.finfo(dtype).eps if name == "atan2" else 0
        least = step * torch.finfo(dtype).tiny
        torch.testing.assert_close(actual, expected, rtol=step, atol=least, equal_nan=True)
        known = ~expected.isnan()
        assert torch.equal(actual[known].signbit(), expected[known].signbit())
