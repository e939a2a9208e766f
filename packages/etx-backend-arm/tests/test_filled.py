# SPDX-License-Identifier: BSD-3-Clause
"""Tensors made of numbers, sums along dimensions, halves of matrices, copies: one delegate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer, get_symmetric_a16w8_quantization_config
from etx_quant import quantize
from lowered import delegates, interpreted, lower
from test_forms import Whole
from torch import Tensor, nn

SHAPE = (2, 3, 5)


def check(model: nn.Module, spec: TosaCompileSpec, *inputs: Tensor, steps: float = 1) -> None:
    """Compare a program that is one delegate with eager, or with the quantized model."""
    is_quantized = "INT" in spec.tosa_spec and inputs[0].is_floating_point()
    if is_quantized:
        quantizer = TOSAQuantizer(spec)
        if spec.has("int16"):
            quantizer.set_global(get_symmetric_a16w8_quantization_config())
        model = quantize(model, [inputs], quantizer)
    program = lower(model, *inputs, partitioner=TOSAPartitioner(spec))
    names = [n.target.__name__ for n in program.graph.nodes if n.op == "call_function"]
    assert len(delegates(program)) == 1
    assert {name.partition(".")[0] for name in names} <= {
        "executorch_call_delegate",
        "getitem",
        "quantize_per_tensor",
        "dequantize_per_tensor",
        "_to_dim_order_copy",
    }
    (actual,), expected = interpreted(program, *inputs), model(*inputs).detach()
    reach = float(expected.double().max() - expected.double().min())
    bound = reach / (2**15 if spec.has("int16") else 255) * steps * 1.01 if is_quantized else 1e-5
    torch.testing.assert_close(actual, expected, rtol=1e-5 if not is_quantized else 0, atol=bound)


SPECS = ("TOSA-1.0+FP", "TOSA-1.0+INT", "TOSA-1.0+INT+int16")
MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "tril": torch.tril,
    "triu": lambda x: torch.triu(x, 1),
    "tril_below": lambda x: torch.tril(x, -1) + x,
    "cumsum": lambda x: torch.cumsum(x, -1),
    "cumsum_first": lambda x: torch.cumsum(x, 0),
    "cumsum_middle": lambda x: torch.cumsum(x, 1) * 2,
    "scatter": lambda x: torch.slice_scatter(x, x[:, :, :2] * 2, 2, 1, 5, 3),
    "scatter_first": lambda x: torch.slice_scatter(x * 2, x[:, :2], 1, 0, None, 2),
    "copied": lambda x: torch.zeros(SHAPE).copy_(x * 2) + x,
    "spread": lambda x: torch.zeros(4, *SHAPE).copy_(x) + x,
    "masked": lambda x: x.masked_fill(torch.tensor([[True], [False], [True]]), 0.5),
    "masked_in_place": lambda x: (x * 2).masked_fill_(
        torch.tensor([True, False, True, True, False]), -1
    ),
    "divided_in_place": lambda x: (x * 2).div_(-3.0),
    "circular": lambda x: torch.nn.functional.pad(x, (2, 1), mode="circular"),
    "full": lambda x: x + torch.full(SHAPE, 1.25),
    "full_row": lambda x: x * torch.full((5,), 1.25),
    "full_like": lambda x: x + torch.full_like(x, -2),
    "ones": lambda x: x - torch.ones(3, 5),
    "arange": lambda x: x + torch.arange(5, dtype=torch.float32),
    "eye": lambda x: x + torch.eye(3, 5),
}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", MOVES)
def test_floats_and_what_is_quantized(name: str, spec: str) -> None:
    torch.manual_seed(0)
    check(Whole(MOVES[name]).eval(), TosaCompileSpec(spec), torch.randn(SHAPE))


def test_sums_keep_infinities_where_they_begin() -> None:
    x = torch.tensor([1.0, 2.0, float("inf"), 3.0, 4.0, -1.0])
    check(Whole(lambda x: torch.cumsum(x, 0)).eval(), TosaCompileSpec("TOSA-1.0+FP"), x)


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65])
def test_sums_of_any_length(length: int) -> None:
    torch.manual_seed(0)
    model = Whole(lambda x: torch.cumsum(x, 0)).eval()
    for spec in SPECS:
        check(model, TosaCompileSpec(spec), torch.rand(length, 2) + 0.1)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_integers(dtype: torch.dtype) -> None:
    x = torch.randint(-9, 9, (3, 4)).to(dtype)
    models = [
        Whole(lambda x: x + torch.full((3, 4), 7, dtype=dtype)),
        Whole(lambda x: x * torch.arange(4, dtype=dtype)),
        Whole(lambda x: x - torch.full_like(x, 3)),
    ]
    for model in models:
        check(model.eval(), TosaCompileSpec("TOSA-1.0+INT"), x)


def test_large_ones_stay_outside() -> None:
    model = Whole(lambda x: x + torch.full((2**11, 2**10), 4.5)).eval()
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    program = lower(model, torch.randn(2**10), partitioner=partitioner)
    (node,) = [n for n in program.graph.nodes if "full" in str(n.target)]
    assert "constants have at most 1048576" in (partitioner.why_not(node) or "")


@pytest.mark.parametrize("spec", SPECS[:2])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_tables_that_are_no_constants(dtype: torch.dtype, spec: str) -> None:
    torch.manual_seed(0)
    model = Whole(lambda w, i: torch.embedding(w, i)).eval()
    index = torch.tensor([[1, 2, 0], [4, 5, 9]], dtype=dtype)
    check(model, TosaCompileSpec(spec), torch.randn(10, 3), index)
