# SPDX-License-Identifier: BSD-3-Clause
"""Powers, rounded quotients and remainders of any sign, next to eager and quantized models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from lowered import delegates, interpreted, lower
from test_filled import check as check_one
from test_forms import Whole
from torch import Tensor

BASES = torch.tensor([-3.0, -2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 7.0])
EXPONENTS = (-3, -2, -1, 0, 2, 3, 4, 0.5, 2.5, -0.5, 5, 8)
FP = TosaCompileSpec("TOSA-1.0+FP+bf16")


def check(function: Callable[..., Tensor], *inputs: Tensor, bound: float = 1e-5) -> None:
    model = Whole(function).eval()
    program = lower(model, *inputs, partitioner=TOSAPartitioner(FP))
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert len(calls) == 2 * len(delegates(program)) == 2
    (actual,) = interpreted(program, *inputs)
    torch.testing.assert_close(actual, model(*inputs), rtol=bound, atol=bound, equal_nan=True)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_of_a_number(exponent: float) -> None:
    check(lambda x: torch.pow(x, exponent), BASES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_powers_of_two_tensors(dtype: torch.dtype) -> None:
    exponents = torch.tensor(EXPONENTS)
    bound = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 16e-3}[dtype]
    check(torch.pow, BASES[:, None].to(dtype), exponents.to(dtype), bound=bound)
    check(torch.pow, BASES.to(dtype), exponents[:, None, None].to(dtype), bound=bound)


DIVISIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "none": lambda x, y: torch.div(x, y, rounding_mode=None),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
}


@pytest.mark.parametrize("name", DIVISIONS)
def test_multiples_are_divided_without_a_rest(name: str) -> None:
    divisors = torch.tensor([3.0, -3.0, 0.1875, -7.0, 49.0, 1e-3, 113.0, -0.5])
    multiples = torch.arange(-60, 61, dtype=torch.float32)[:, None]
    check(DIVISIONS[name], multiples * divisors, divisors)


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_of_what_is_drawn(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((200, 20), generator=generator) * 100
    y = torch.randn(20, generator=generator)
    check(DIVISIONS[name], x, torch.where(y.abs() < 0.05, 0.3, y), bound=2e-4)


@pytest.mark.parametrize("number", [3, -2.5, 0.3])
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_by_a_number(name: str, number: float) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((5, 7), generator=generator) * 10
    check(lambda x: DIVISIONS[name](x, number), x)


def test_no_division_by_zero() -> None:
    partitioner = TOSAPartitioner(FP)
    model = Whole(lambda x: torch.remainder(x, 0.0)).eval()
    program = lower(model, torch.randn(3), partitioner=partitioner)
    (node,) = [n for n in program.graph.nodes if n.op == "call_function"]
    assert partitioner.why_not(node) == "remainder divides by zero"


@pytest.mark.parametrize("number", [3, -2.5])
@pytest.mark.parametrize("name", DIVISIONS)
def test_tables_of_integers(name: str, number: float) -> None:
    """What is made of each step is what the quantized model makes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((5, 7), generator=generator) * 10
    model = Whole(lambda x: DIVISIONS[name](x, number)).eval()
    check_one(model, TosaCompileSpec("TOSA-1.0+INT"), x, steps=0.01)


@pytest.mark.parametrize("name", ["floor", "trunc", "none", "floor_divide"])
def test_quotients_of_integers(name: str) -> None:
    """What is quantized is divided and rounded in three operators."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((5, 7), generator=generator) * 10
    y = torch.rand((5, 7), generator=generator) + 0.5
    model = Whole(DIVISIONS[name]).eval()
    check_one(model, TosaCompileSpec("TOSA-1.0+INT"), x, y, steps=8)
