# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers are computed by their parts, as eager does it; real ones stay as they are."""

import math

import pytest
import torch
from etx_exir import to_edge
from etx_exir.lower.decompose_complex import COMPLEX, PARTS, complex_by_parts
from programs import Calls
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
DTYPES = (torch.complex64, torch.complex128)
FUNCTIONS = {
    "add": lambda x, y, r: (x + y, x + r, r + x, x + 2, 2.5 + x, x + 2j),
    "add of a part": lambda x, y, r: (torch.add(x, y, alpha=3), torch.add(x, r, alpha=2 - 1j)),
    "sub": lambda x, y, r: (x - y, r - x, x - (1 + 2j), torch.sub(x, y, alpha=2)),
    "mul": lambda x, y, r: (x * y, x * r, r * x, x * 2, x * (1 - 2j), r * 1j),
    "div": lambda x, y, r: (x / y, x / r, r / x, x / 4, x / (1 - 2j), 1 / x, x.reciprocal()),
    "large and small quotients": lambda x, y, r: (x * 1e18) / (y * 1e19),
    "neg": lambda x, y, r: -x,
    "conj": lambda x, y, r: (x.conj() * y, x.conj().resolve_conj(), torch.conj_physical(x)),
    "abs": lambda x, y, r: x.abs(),
    "angle": lambda x, y, r: (x.angle(), r.angle(), torch.tensor([1, -2]).angle()),
    "polar": lambda x, y, r: torch.polar(r.abs(), r),
    "complex": lambda x, y, r: torch.complex(r, r + 1),
    "exp": lambda x, y, r: (x.exp(), x.log(), x.sqrt()),
    "powers": lambda x, y, r: (x**0, x**1, x**2, x**3, x**-1.5, (x * 0) ** 2),
    "sines": lambda x, y, r: (x.sin(), x.cos()),
    "full": lambda x, y, r: (
        *(torch.full((2, 3), 1 + 2j), torch.full((2,), 3, dtype=x.dtype)),
        *(torch.full_like(x, 2j), torch.zeros_like(y), torch.full_like(r, 2j, dtype=x.dtype)),
        torch.zeros(2, 3, dtype=x.dtype) + x[:2, :3],
    ),
    "sgn": lambda x, y, r: (x.sgn(), (x * 0).sgn(), r.sgn()),
    "equal": lambda x, y, r: (x == y, x != y, x == x, x == 1j),
    "scalars": lambda x, y, r: (
        *(aten.add.Scalar(x, 2j), aten.sub.Scalar(x, 2), aten.mul.Scalar(x, 1 - 2j)),
        *(aten.div.Scalar(x, 2j), aten.eq.Scalar(x, 1j), aten.ne.Scalar(x, 1)),
    ),
    "matmul": lambda x, y, r: (x @ y.T, (x[None] @ y.mT[None])),
    "sums": lambda x, y, r: (x.sum(), x.sum(0), x.sum([-1], True), x.mean(1), x.cumsum(-1)),
    "parts": lambda x, y, r: (x.real, x.imag, torch.view_as_real(x)),
    "from real": lambda x, y, r: (r.to(x.dtype), torch.view_as_complex(r.view(3, 2, 2))),
}


class Decomposed(TorchDispatchMode):
    """Compute by decompositions, and remember of which operators."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        rule = complex_by_parts(COMPLEX).get(function)
        if rule is not None:
            with self:
                found = rule(*args, **kwargs or {})
            if found is not NotImplemented:
                self.seen.add(function)
                return found
        return function(*args, **kwargs or {})


def operands(dtype):
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(3, 4, dtype=dtype, generator=generator) for _ in range(2))
    return x, y, x.real.contiguous()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eager(name, dtype):
    given = operands(dtype)
    with Decomposed():
        found = FUNCTIONS[name](*given)
    torch.testing.assert_close(found, FUNCTIONS[name](*given))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", [torch.exp, torch.sin, torch.cos, torch.sqrt])
def test_an_axis_stays_one_where_numbers_overflow(function, dtype):
    far = torch.tensor([99.0, 999.0, torch.inf, -torch.inf], dtype=dtype.to_real())
    given = torch.stack([torch.complex(far, 0 * far.sign()), torch.complex(0 * far.sign(), far)])
    given = given[:1] if function is torch.exp else given
    with Decomposed():
        found = function(given)
    torch.testing.assert_close(found, function(given), equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", [torch.exp, torch.sin, torch.cos])
def test_results_are_finite_up_to_the_largest(function, dtype):
    """A factor of these overflows before their product with a sine does."""
    largest = math.log(torch.finfo(dtype).max)
    far = torch.linspace(-0.6, 1.6, 23, dtype=dtype.to_real()) + largest
    angles = torch.linspace(-3.1, 3.1, 40, dtype=dtype.to_real())
    far, angles = (each.reshape(-1) for each in torch.meshgrid(far, angles, indexing="ij"))
    given = torch.complex(far, angles) if function is torch.exp else torch.complex(angles, far)
    with Decomposed():
        found = torch.view_as_real(function(given))
    expected = torch.view_as_real(function(given))
    assert (expected.isfinite().sum(-1) == 1).any()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("exponent", [0.5, 1.7, 2, 3, 5, 2500, -0.5])
def test_powers_are_finite_up_to_the_largest(exponent, dtype):
    """So are squares and cubes, which are products as in eager."""
    far = math.log(torch.finfo(dtype).max) / max(exponent, 1)
    sizes = torch.linspace(-0.6, 1.6, 23, dtype=dtype.to_real()) / max(exponent, 1) + far
    angles = torch.linspace(-3.1, 3.1, 40, dtype=dtype.to_real())
    sizes, angles = (each.reshape(-1) for each in torch.meshgrid(sizes, angles, indexing="ij"))
    given = torch.polar(sizes.exp(), angles)
    corner = torch.full((2, 1), torch.finfo(dtype).max / 1.1, dtype=dtype.to_real())
    given = torch.cat([given, torch.complex(*corner)])
    given = given[torch.view_as_real(given).isfinite().all(-1)]
    with Decomposed():
        found = torch.view_as_real(given**exponent)
    expected = torch.view_as_real(given**exponent)
    finite = expected.isfinite()
    assert finite.any()
    assert found[finite].isfinite().all()
    near = 1e-4 * expected.abs().amax(-1, keepdim=True).clamp(max=torch.finfo(dtype).max)
    assert exponent > 100 or ((found - expected).abs() <= near)[finite].all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", [torch.log, torch.sqrt])
def test_numbers_whose_size_is_too_large(function, dtype):
    most = torch.finfo(dtype).max
    given = torch.tensor([complex(a * most, b * most) for a in (-1, 0.8, 1) for b in (-0.9, 1)])
    with Decomposed():
        found = function(given.to(dtype))
    torch.testing.assert_close(found, function(given.to(dtype)))


def test_roots_of_the_axis_are_exact():
    given = torch.tensor([0, 4, -4, complex(-4, -0.0), -1e30, 3e38, complex(-1e38, 1e38), 2j])
    with Decomposed():
        found = given.sqrt()
    torch.testing.assert_close(found, given.sqrt(), rtol=1e-6, atol=0)


def test_every_decomposition_is_called():
    with Decomposed() as mode:
        for function in FUNCTIONS.values():
            function(*operands(torch.complex64))
    assert {op for op in (*COMPLEX, *PARTS) if op not in mode.seen} <= OUT_OF_MODE


OUT_OF_MODE = {aten._conj.default}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_complex_arithmetic_is_left(name):
    program = torch.export.export(Calls(FUNCTIONS[name]), operands(torch.complex64))
    edge = to_edge(program)
    found = edge.exported_program().module(check_guards=False)(*operands(torch.complex64))
    expected = FUNCTIONS[name](*operands(torch.complex64))
    torch.testing.assert_close(found, expected)
    edge.to_executorch()


def test_real_numbers_stay():
    given = torch.ones(2), torch.ones(2)
    table = complex_by_parts({aten.mul.Tensor: torch.add})
    for op in (aten.add.Tensor, aten.div.Tensor, aten.eq.Tensor, aten.sub.Tensor):
        assert table[op](*given) is NotImplemented
    assert table[aten._to_copy.default](given[0], dtype=torch.float64) is NotImplemented
    assert table[aten.mul.Tensor](*given).tolist() == [2.0, 2.0]


def test_a_sum_of_real_numbers_is_decomposed_as_without_complex_ones():
    edge = to_edge(torch.export.export(Calls(lambda x: x.sum()), (torch.ones(2, 3),)))
    found = {str(node.target) for node in edge.exported_program().graph.nodes}
    assert "aten.sum.dim_IntList" in found

    assert math.isclose(
        float(COMPLEX[aten.angle.default](torch.tensor(-2.0))), math.pi, rel_tol=1e-6
    )
