# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons, truths and bits next to TOSA's reference model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_exir.ir.delegate_call import CALL_DELEGATE
from lowered import interpreted, lower
from test_forms import Whole
from torch import Tensor
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

COMPARISONS = (torch.eq, torch.ge, torch.gt, torch.le, torch.lt, torch.ne)
BITS = (torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor)
LOGICAL = (torch.logical_and, torch.logical_or, torch.logical_xor)
BORDERS = {"quantize_per_tensor.default", "dequantize_per_tensor.default"}
SHAPES = ((2, 3, 4, 5), (4, 1))
INTEGERS = (torch.int8, torch.int16, torch.int32)
Function = Callable[..., Any]


def drawn(dtype: torch.dtype, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return tensors of few different numbers, so that some are equal."""
    generator = torch.Generator().manual_seed(3)
    made = [torch.randint(-2, 3, shape, generator=generator) for shape in shapes]
    return [(x > 0) if dtype == torch.bool else x.to(dtype) for x in made]


def assert_delegated(
    function: Function, inputs: list[Tensor], profile: str, quantized: bool = False
) -> None:
    """All of a function is one delegate, whose results are those of eager mode."""
    spec, model = TosaCompileSpec(f"TOSA-1.0+{profile}"), Whole(function).eval()
    if quantized:
        program = torch.export.export(model, tuple(inputs))
        prepared = prepare_pt2e(program.module(check_guards=False), TOSAQuantizer(spec))
        prepared(*inputs)
        model = convert_pt2e(prepared)
    program = lower(model, *inputs, partitioner=TOSAPartitioner(spec))
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert targets.count(CALL_DELEGATE) == 1
    names = {getattr(target, "__name__", str(target)) for target in targets}
    names -= BORDERS if quantized else set()
    assert names <= {"executorch_call_delegate", "getitem"}
    (actual,) = interpreted(program, *inputs)
    expected = model(*inputs)
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)


@pytest.mark.parametrize("function", COMPARISONS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, *INTEGERS], ids=str)
def test_comparisons(function: Function, dtype: torch.dtype) -> None:
    profile = "FP" if dtype == torch.float32 else "INT"
    first, second = drawn(dtype, *SHAPES)
    assert_delegated(function, [first, second], profile)
    number = True if dtype == torch.bool else 1
    assert_delegated(lambda x: function(x, number), [first], profile)


def test_a_number_beyond_integers_stays_outside() -> None:
    (x,) = drawn(torch.int32, (3, 4))
    for number in (float("inf"), 0.5, 2**40):
        spec = TosaCompileSpec("TOSA-1.0+INT")
        model = Whole(lambda x, n=number: torch.gt(x, n))
        program = lower(model, x, partitioner=TOSAPartitioner(spec))
        assert CALL_DELEGATE not in {n.target for n in program.graph.nodes}


def test_comparisons_with_nan() -> None:
    x = torch.tensor([float("nan"), 1.0, float("inf"), -float("inf")])
    for function in COMPARISONS:
        assert_delegated(function, [x, x.flip(0)], "FP")


@pytest.mark.parametrize("function", BITS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS], ids=str)
def test_bits(function: Function, dtype: torch.dtype) -> None:
    first, second = drawn(dtype, *SHAPES)
    assert_delegated(function, [first, second], "INT")
    if dtype != torch.bool:
        assert_delegated(lambda x: function(x, 3), [first], "INT")
    assert_delegated(torch.bitwise_not, [first], "INT")


@pytest.mark.parametrize("profile", ["INT", "FP"])
def test_truths(profile: str) -> None:
    pair = drawn(torch.bool, *SHAPES)
    for function in LOGICAL:
        assert_delegated(function, pair, profile)
    assert_delegated(torch.logical_not, pair[:1], profile)
    assert_delegated(torch.any, pair[:1], profile)
    assert_delegated(lambda x: x.any(1), pair[:1], profile)
    assert_delegated(lambda x: x.all((0, 3), keepdim=True), pair[:1], profile)


@pytest.mark.parametrize("dtype", [torch.float32, *INTEGERS], ids=str)
def test_choices(dtype: torch.dtype) -> None:
    profile = "FP" if dtype == torch.float32 else "INT"
    (condition,), (x, y) = drawn(torch.bool, (3, 1, 5)), drawn(dtype, (2, 3, 4, 5), (4, 5))
    assert_delegated(torch.where, [condition, x, y], profile)
    assert_delegated(lambda c, x: x.masked_fill(c, 7), [condition, x], profile)


@pytest.mark.parametrize("function", COMPARISONS, ids=lambda each: each.__name__)
def test_comparisons_of_quantized_numbers(function: Function) -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(shape, generator=generator) for shape in SHAPES)
    assert_delegated(function, [x, y], "INT", quantized=True)
    for number in (0, 0.25, -99.0, 99):
        assert_delegated(lambda x, n=number: function(x, n), [x], "INT", quantized=True)
    assert_delegated(lambda x: function(torch.relu(x), 0), [x], "INT", quantized=True)
    assert_delegated(lambda x: function(x, x), [x], "INT", quantized=True)


def test_choices_of_quantized_numbers() -> None:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(shape, generator=generator) for shape in SHAPES)
    assert_delegated(lambda x, y: torch.where(x > y, x, y), [x, y], "INT", quantized=True)
    assert_delegated(
        lambda x, y: torch.where(y > 0.5, torch.tanh(x), y), [x, y], "INT", quantized=True
    )
