# SPDX-License-Identifier: BSD-3-Clause
"""Special functions of odd, small, large and random numbers are eager's, in every dtype."""

import math

import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.ir.own_ops import POINTWISE, POLYNOMIAL
from etx_exir.lower.decompose_special import SPECIAL
from etx_schema import read_pte

ODD = (
    *(0.0, -0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 0.999, -0.999, 1 - 1e-12, 1e-20, -1e-20),
    *(1e-310, 7.9999, 8.0, 8.0001, 100.0, 171.3, -700.5, 6e4, 1e30, -1e30, 1e306, -1e306),
    *(math.inf, -math.inf, math.nan),
)
WITHOUT_HALVES = (
    torch.ops.aten.special_erfcx.default,
    torch.ops.aten.special_ndtri.default,
    torch.ops.aten.special_modified_bessel_i0.default,
    torch.ops.aten.special_modified_bessel_i1.default,
    torch.ops.aten.special_spherical_bessel_j0.default,
)
TOLERANCE = {
    torch.float64: (2e-12, 1e-13),
    torch.float32: (2.5e-6, 4e-7),
    torch.float16: (2e-3, 1e-6),
    torch.bfloat16: (1.6e-2, 1e-6),
}
"""Relative, and absolute for the zeros of lgamma and digamma."""


def numbers() -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    sets = torch.rand(4, 400, dtype=torch.float64, generator=generator)
    near_one = 1 - 10 ** (-14 * sets[3])
    odd = torch.tensor(ODD, dtype=torch.float64)
    return torch.cat([odd, sets[0] * 2 - 1, sets[1] * 12 - 6, sets[2] * 70, near_one])


EAGER = [
    (op, dtype)
    for op in SPECIAL
    for dtype in TOLERANCE
    if op not in WITHOUT_HALVES or dtype.itemsize > 2
]


@pytest.mark.parametrize(("op", "dtype"), EAGER, ids=str)
def test_real_numbers(op, dtype):
    x = numbers().to(dtype)
    actual, expected = SPECIAL[op](x), op(x)
    relative, absolute = TOLERANCE[dtype]
    torch.testing.assert_close(actual, expected, rtol=relative, atol=absolute, equal_nan=True)


@pytest.mark.parametrize("op", SPECIAL, ids=str)
def test_float32_is_rounded_once(op):
    x = numbers().to(torch.float32)
    expected = op(x.to(torch.float64)).to(torch.float32)
    torch.testing.assert_close(SPECIAL[op](x), expected, rtol=1.2e-7, atol=1e-14, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("op", SPECIAL, ids=str)
def test_small_results_have_digits_too(op, dtype):
    x = torch.tensor([1e-30, -1e-20, 1e-5, 0.0, -0.0], dtype=dtype)
    torch.testing.assert_close(SPECIAL[op](x), op(x), rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.bool], ids=str)
@pytest.mark.parametrize("op", SPECIAL, ids=str)
def test_integers(op, dtype):
    for x in (torch.tensor([0, 1, 2, 3, 7, 8, 9, 60, -1, -3]).to(dtype), torch.tensor(1).to(dtype)):
        torch.testing.assert_close(SPECIAL[op](x), op(x), rtol=1e-6, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("op", SPECIAL, ids=str)
def test_no_numbers(op):
    assert SPECIAL[op](torch.empty(2, 0)).shape == (2, 0)


@pytest.mark.parametrize("terms", [1, 2, 5])
def test_polynomials(terms):
    x = numbers()[:20].clamp(-9, 9)
    c = torch.randn(terms, dtype=torch.float64).tolist()
    expected = sum((c[k] * x**k for k in range(terms)), torch.zeros_like(x))
    for found in (POLYNOMIAL(x, c), POINTWISE[POLYNOMIAL](x, c)):
        torch.testing.assert_close(found, expected, equal_nan=True)


class Inverse(torch.nn.Module):
    def forward(self, x):
        return torch.erfinv(x)


@pytest.mark.parametrize("target", ["etx", "executorch"])
def test_a_series_is_one_operator_where_a_target_has_it(target):
    program = torch.export.export(Inverse(), (torch.rand(3),))
    file = to_edge(program).to_executorch(ExecutorchBackendConfig(target=target)).buffer
    plan = read_pte(file).program.execution_plan[0]
    assert ("etx::polynomial" in [op.name for op in plan.operators]) == (target == "etx")
    assert (len(plan.chains[0].instructions) > 99) == (target == "executorch")
