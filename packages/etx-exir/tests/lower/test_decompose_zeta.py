# SPDX-License-Identifier: BSD-3-Clause
"""Zeta and polygamma functions are eager's on both sides of 0, at poles and far from them."""

import math

import pytest
import torch
from etx_exir.lower.decompose_zeta import ZETA

ZETA_OF = torch.ops.aten.special_zeta
POLYGAMMA = torch.ops.aten.polygamma.default
DTYPES = [torch.float64, torch.float32]


def drawn(low: float, high: float, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    return (torch.rand(400, dtype=torch.float64, generator=generator) * (high - low) + low).to(
        dtype
    )


def compared(actual: torch.Tensor, expected: torch.Tensor, wide: torch.Tensor) -> None:
    """Compare with eager in float64 where eager in the dtype has fewer digits."""
    assert actual.dtype == expected.dtype
    relative = 1e-12 if actual.dtype == torch.float64 else 1.2e-7
    wide = wide.to(actual.dtype)
    torch.testing.assert_close(actual, wide, rtol=relative, atol=1e-14, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 40.0), (-35.0, 0.0)], ids=str)
def test_powers_of_sums(ends, dtype):
    q = drawn(*ends, dtype)
    whole = torch.arange(400, dtype=dtype) % 7 + 2
    for x in (whole, whole + 0.5):
        actual, expected = ZETA[ZETA_OF.default](x, q), ZETA_OF.default(x, q)
        compared(actual, expected, ZETA_OF.default(x.double(), q.double()))


def test_poles_and_where_there_is_none():
    x = torch.tensor([0.5, 1.0, 2.0, 2.0, 2.0, 2.5, 3.0, 1e3, 1e5, math.nan, 2.0])
    q = torch.tensor([1.0, 1.0, 0.0, -1.0, -0.0, -1.5, -2.5, 0.9999, 1.00001, 1.0, math.nan])
    actual, expected = ZETA[ZETA_OF.default](x, q), ZETA_OF.default(x, q)
    torch.testing.assert_close(actual, expected, rtol=2e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("q", [torch.tensor([1, 2, 9]), torch.tensor(2.5).half().float()], ids=str)
def test_numbers(q):
    for op, arguments in ((ZETA_OF.self_scalar, (3, q)), (ZETA_OF.other_scalar, (q + 1, 2.5))):
        actual, expected = ZETA[op](*arguments), op(*arguments)
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("n", range(6))
def test_derivatives_of_digamma(n, dtype):
    x = drawn(-9.0, 9.0, dtype)
    x = x[x != 0] if dtype.is_floating_point else x.abs() + 1
    actual, expected = ZETA[POLYGAMMA](n, x), POLYGAMMA(n, x)
    assert actual.dtype == expected.dtype
    poles = x.double() == x.double().floor()
    poles = poles.logical_and(x <= 0)  # eager has finite numbers there of n = 1
    relative = {torch.float64: 2e-9, torch.float16: 4e-3, torch.int64: 1e-5}.get(dtype, 2e-7)
    if dtype == torch.float32:
        expected = POLYGAMMA(n, x.double()).float()
    for found in (actual, expected):
        found.masked_fill_(poles, 0)
    torch.testing.assert_close(actual, expected, rtol=relative, atol=1e-3 * relative)


def test_derivatives_at_poles():
    x = torch.tensor([0.0, -1.0, -2.0, 1.0, math.nan])
    for n in (2, 3):
        torch.testing.assert_close(ZETA[POLYGAMMA](n, x), POLYGAMMA(n, x), equal_nan=True)
    assert ZETA[POLYGAMMA](171, torch.tensor([2.0])).isinf().item()


@pytest.mark.parametrize("op", ZETA, ids=str)
def test_no_numbers(op):
    empty = torch.empty(2, 0)
    scalars = {"self_scalar": (2, empty), "other_scalar": (empty, 2)}
    arguments = (2, empty) if op is POLYGAMMA else scalars.get(op._overloadname, (empty, empty))
    assert ZETA[op](*arguments).shape == (2, 0)
