# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are computed from series: of float64 next to numbers of more digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
import torch
from case import F32, F64
from harness import PLUGIN, KernelError, Out, Over


def call(name: str, *inputs: torch.Tensor) -> torch.Tensor:
    (found,) = PLUGIN.call(name, *inputs, Out(list(inputs[0].shape), inputs[0].dtype))
    return found


@pytest.mark.parametrize("terms", [1, 2, 3, 8, 37])
@pytest.mark.parametrize("shape", [(), (1,), (63,), (64,), (7, 131), (3, 0), (300, 301)])
def test_polynomials(shape: tuple[int, ...], terms: int) -> None:
    torch.manual_seed(terms)
    x, c = torch.randn(shape, dtype=F64), torch.randn(terms, dtype=F64).tolist()
    expected = sum((c[k] * x**k for k in range(terms)), torch.zeros_like(x))
    (found,) = PLUGIN.call("etx::polynomial.out", x, c, Out(list(shape), F64), threads=3)
    scale = sum((abs(c[k]) * x.abs() ** k for k in range(terms)), torch.zeros_like(x))
    assert ((found - expected).abs() <= 1e-14 * scale).all()
    if x.numel() != 0:
        (over,) = PLUGIN.call("etx::polynomial.out", x.clone(), c, Over(0), threads=3)
        assert torch.equal(over, found)
        (last,) = PLUGIN.call("etx::polynomial.out", x.view(-1)[-1:].clone(), c, Out([1], F64))
        assert last.item() == found.view(-1)[-1].item()


def test_polynomials_refuse_what_they_cannot() -> None:
    x = torch.ones(2, dtype=F64)
    with pytest.raises(KernelError, match="one number at least"):
        PLUGIN.call("etx::polynomial.out", x, [], Out([2], F64))
    with pytest.raises(KernelError, match="must be float64"):
        PLUGIN.call("etx::polynomial.out", x.float(), [1.0], Out([2], F32))


def of_many_sizes() -> torch.Tensor:
    torch.manual_seed(0)
    parts = (
        torch.rand(999, dtype=F64) * 2,
        torch.exp(torch.randn(999, dtype=F64) * 100),
        1 + torch.randn(999, dtype=F64) * 1e-3,
        1 + torch.randn(99, dtype=F64) * 1e-12,
        torch.rand(99, dtype=F64) * 1e-310,
    )
    x = torch.cat(parts)
    return x[torch.isfinite(x) & (x > 0)]


def near_zero() -> torch.Tensor:
    torch.manual_seed(0)
    parts = (
        torch.randn(999, dtype=F64) * 1e-8,
        torch.rand(999, dtype=F64) * 4 - 0.99,
        torch.exp(torch.randn(999, dtype=F64).abs() * 50),
        torch.randn(99, dtype=F64) * 1e-17,
    )
    return torch.cat(parts)


EXACT: dict[str, tuple[Callable[[Decimal], Decimal], torch.Tensor, float]] = {
    "log": (lambda x: x.ln(), of_many_sizes(), 1),
    "log1p": (lambda x: (1 + x).ln(), near_zero(), 1),
    "expm1": (lambda x: x.exp() - 1, near_zero().clamp(-40, 700), 2),
    "atanh": (lambda x: ((1 + x) / (1 - x)).ln() / 2, near_zero().clamp(-0.99, 0.99), 2),
}
"""What each is, of which numbers, and within how many units in the last place."""


@pytest.mark.parametrize("name", EXACT)
def test_functions_of_float64_next_to_50_digits(name: str) -> None:
    function, x, ulps = EXACT[name]
    with localcontext(prec=50):
        exact = [function(Decimal(number)) for number in x.tolist()]
        found = [Decimal(number) for number in call(f"aten::{name}.out", x).tolist()]
        units = [Decimal(math.ulp(float(number))) for number in exact]
        worst = max(abs(f - e) / u for f, e, u in zip(found, exact, units, strict=True))
    assert worst <= ulps


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
@pytest.mark.parametrize("shape", [(300, 12), (5, 16), (129, 2), (3, 2, 90, 3), (256, 13)])
def test_softmax_of_many_short_lines(shape: tuple[int, ...], name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape) * 9
    x.view(-1)[7] = -torch.inf
    (found,) = PLUGIN.call(f"aten::{name}.out", x, -1, False, Out(list(shape), F32), threads=2)
    expected = getattr(torch.ops.aten, name)(x.double(), -1, False).float()
    torch.testing.assert_close(found, expected)


SPECIAL = torch.tensor(
    [
        0.0,
        -0.0,
        torch.inf,
        -torch.inf,
        torch.nan,
        -1,
        1,
        -2,
        1.7e308,
        710.2,
        -710.2,
        709.5,
        1e-20,
        -50,
    ],
    dtype=F64,
)


@pytest.mark.parametrize(
    "name", ["log", "log1p", "sqrt", "reciprocal", "rsqrt", "silu", "expm1", "atanh"]
)
def test_functions_of_special_numbers(name: str) -> None:
    expected = getattr(torch.ops.aten, name)(SPECIAL)
    torch.testing.assert_close(call(f"aten::{name}.out", SPECIAL), expected, equal_nan=True)
    signs = torch.signbit(call(f"aten::{name}.out", SPECIAL))
    assert (signs == torch.signbit(expected))[~torch.isnan(expected)].all()


@pytest.mark.parametrize("dtype", [F32, F64])
def test_lengths_of_special_numbers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    largest = torch.finfo(dtype).max
    few = torch.tensor([0, torch.inf, -torch.inf, torch.nan, largest, 1e-40, 3], dtype=dtype)
    a, b = (each.flatten() for each in torch.meshgrid(few, few, indexing="ij"))
    wide = torch.randn(999, dtype=dtype) * torch.exp(torch.randn(999, dtype=dtype) * 20)
    a, b = torch.cat([a, wide]), torch.cat([b, wide.flip(0)])
    found = call("aten::hypot.out", a, b)
    torch.testing.assert_close(found, torch.hypot(a, b), equal_nan=True)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_softmax_of_float64_over_other_dimensions(name: str, dim: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 9, 700, dtype=F64) * 9
    x[0, 3, 5], x[2, 2, 2], x[:, 1, 1], x[4, :, 8] = torch.nan, torch.inf, -torch.inf, -torch.inf
    (found,) = PLUGIN.call(f"aten::{name}.out", x, dim, False, Out(list(x.shape), F64), threads=2)
    expected = getattr(torch.ops.aten, name)(x, dim, False)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13, equal_nan=True)
