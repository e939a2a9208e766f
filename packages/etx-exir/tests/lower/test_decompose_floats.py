# SPDX-License-Identifier: BSD-3-Clause
"""Signs, exponents and neighbours of numbers are eager's, bit by bit."""

import math

import pytest
import torch
from etx_exir.lower.decompose_floats import FLOATS

aten = torch.ops.aten
ODD = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 0.75, 127.0, 128.0, 255.9, math.inf, -math.inf),
    *(1e-45, -1e-45, 1e-38, 1.1754943508222875e-38, 3.4028234663852886e38, 5e-324),
    *(2.2250738585072014e-308, 1.7976931348623157e308, math.nan),
)
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def numbers(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return numbers of all sizes, and the same in another order."""
    generator = torch.Generator().manual_seed(5)
    sizes = 10 ** torch.linspace(-30, 30, 300, dtype=torch.float64)
    drawn = torch.randn(300, dtype=torch.float64, generator=generator) * sizes
    x = torch.cat([torch.tensor(ODD, dtype=torch.float64), drawn]).to(dtype)
    return x, x[torch.randperm(len(x), generator=generator)]


def check(op, *arguments, **named):
    expected = op(*arguments, **named)
    actual = FLOATS[op](*arguments, **named)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_signs(dtype):
    x, y = (part[~part.isnan()] for part in numbers(dtype))
    check(aten.signbit.default, x)
    check(aten.copysign.Tensor, x, y)
    for number in (-0.0, 0.0, -2, 3.5):
        check(aten.copysign.Scalar, x, number)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool], ids=str)
def test_signs_of_integers(dtype):
    x = torch.tensor([0, 1, 3, -1]).to(dtype)
    check(aten.signbit.default, x)
    check(aten.copysign.Tensor, x, torch.tensor([-1.0, 1.0, -0.0, 2.0]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_parts(dtype):
    x = numbers(dtype)[0]
    for actual, expected in zip(FLOATS[aten.frexp.Tensor](x), aten.frexp.Tensor(x), strict=True):
        assert actual.dtype == expected.dtype
        finite = x.isfinite() if expected.dtype == torch.int32 else slice(None)  # else left open
        torch.testing.assert_close(actual[finite], expected[finite], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_neighbours(dtype):
    x, y = numbers(dtype)
    check(aten.nextafter.default, x, y)
    check(aten.nextafter.default, x[:, None], x[:40])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_powers_of_two(dtype):
    x, y = numbers(dtype)
    check(aten.ldexp.Tensor, x, torch.arange(len(x)) % 40 - 20)
    check(aten.ldexp.Tensor, x, y.clamp(-20, 20))


def test_powers_of_two_of_complex_numbers():
    x = torch.complex(*torch.randn(2, 9, generator=torch.Generator().manual_seed(0)))
    check(aten.ldexp.Tensor, x, torch.arange(9) - 4)
    check(aten.ldexp.Tensor, x, torch.linspace(-2, 2, 9))


@pytest.mark.parametrize("decimals", [0, 1, 3, -3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_digits(dtype, decimals):
    check(aten.round.decimals, numbers(dtype)[0], decimals=decimals)


def test_all_are_tested():
    names = {op._schema.name for op in FLOATS}
    assert names == {
        f"aten::{name}" for name in ("signbit", "copysign", "frexp", "nextafter", "ldexp", "round")
    }
