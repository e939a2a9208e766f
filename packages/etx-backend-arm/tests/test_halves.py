# SPDX-License-Identifier: BSD-3-Clause
"""Programs of float16 and bfloat16, each one delegate in TOSA's profile FP: next to eager."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from lowered import delegates, lower, on_reference_model
from test_forms import MANY, Whole, listed
from test_lowering import CASES, SHAPE
from torch import Tensor, nn

FP = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
BF16 = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP+bf16"))
BOUNDS = {torch.float16: 2e-3, torch.bfloat16: 16e-3}
"""Two roundings of a number."""
DTYPES = pytest.mark.parametrize("dtype", BOUNDS, ids=str)


def check(model: nn.Module, *inputs: Tensor) -> None:
    dtype = inputs[0].dtype
    chosen = BF16 if dtype == torch.bfloat16 else FP
    (delegate,) = delegates(lower(model, *inputs, partitioner=chosen))
    actual = on_reference_model(delegate.processed_bytes, *inputs)
    with torch.no_grad():
        expected = listed(model(*inputs))
    for made, want in zip(actual, expected, strict=True):
        torch.testing.assert_close(made, want, rtol=BOUNDS[dtype], atol=BOUNDS[dtype])


@DTYPES
@pytest.mark.parametrize("name", MANY)
def test_functions(name: str, dtype: torch.dtype) -> None:
    function, shapes = MANY[name]
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    check(Whole(function).eval(), *inputs)


@DTYPES
@pytest.mark.parametrize("name", CASES)
def test_layers(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    check(deepcopy(CASES[name]).to(dtype).eval(), torch.randn(SHAPE).to(dtype))


@DTYPES
def test_sums_and_squares_do_not_overflow(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.LayerNorm(64), nn.Softmax(-1)).to(dtype)
    check(model, (torch.randn(2, 64) * 20_000).to(dtype))
    check(Whole(lambda x: x.mean(-1)).eval(), (torch.rand(2, 64) * 30_000).to(dtype))


def test_bfloat16_is_an_extension() -> None:
    program = lower(nn.ReLU(), torch.randn(3).bfloat16(), partitioner=FP)
    assert delegates(program) == []
    (node,) = [n for n in program.graph.nodes if n.op == "call_function"]
    assert FP.why_not(node) == "relu is of bfloat16, which TOSA-1.0+FP has not: add +bf16"


def test_types_are_not_mixed() -> None:
    program = lower(Whole(torch.add), torch.randn(3), torch.randn(3).half(), partitioner=FP)
    (node,) = [n for n in program.graph.nodes if n.op == "call_function"]
    assert "is torch.float16, and add is torch.float32: they must be alike" in FP.why_not(node)
