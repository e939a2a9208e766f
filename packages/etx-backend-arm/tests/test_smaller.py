# SPDX-License-Identifier: BSD-3-Clause
"""Operators that are written in smaller ones: one delegate, in either profile."""

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
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

F = torch.nn.functional
IMAGE = (2, 3, 7, 8)
Function = Callable[..., Any]
BOTH: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "addmm": (torch.addmm, ((4,), (3, 5), (5, 4))),
    "addmm_scaled": (
        lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2.0),
        ((4,), (3, 5), (5, 4)),
    ),
    "between_tensors": (
        lambda x, low, high: torch.clamp(x, low, high),
        ((3, 4, 5), (4, 1), (5,)),
    ),
    "glu": (lambda x: F.glu(x, 1), ((2, 6, 5),)),
    "groups": (nn.Conv2d(8, 12, 3, groups=2, padding=1, stride=2), ((2, 8, 9, 10),)),
    "groups_of_lines": (nn.Conv1d(9, 6, 3, groups=3, dilation=2, bias=False), ((2, 9, 20),)),
    "largest_of_rows": (lambda x: x.max(1).values, (IMAGE,)),
    "mean_of_all": (torch.mean, ((3, 4),)),
    "pool_to_five": (lambda x: F.adaptive_avg_pool2d(x, (5, 3)), (IMAGE,)),
    "pool_to_one": (lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    "put_row": (lambda x, y: torch.select_scatter(x, y, 1, -1), ((3, 4), (3,))),
    "put_rows": (lambda x, y: torch.slice_scatter(x, y, 1, 1, 3), ((3, 4), (3, 2))),
    "quotient": (lambda x, y: x / (y.abs() + 1), (IMAGE, IMAGE)),
    "smallest_kept": (lambda x: x.min(-1, keepdim=True)[0], (IMAGE,)),
    "sum_of_all": (torch.sum, ((3, 4),)),
    "transposed_without_bias": (nn.ConvTranspose2d(3, 5, 3, 2, bias=False), (IMAGE,)),
    "variance": (lambda x: x.var(1), (IMAGE,)),
    "deviation": (lambda x: x.std(1), (IMAGE,)),
    "variance_of_all": (lambda x: x.var((0, 1), correction=0, keepdim=True), ((3, 4, 5),)),
    "vector_by_matrix": (nn.Linear(8, 5), ((8,),)),
    "volumes": (nn.Conv3d(3, 4, 3), ((2, 3, 6, 7, 8),)),
    "volumes_padded": (
        nn.Conv3d(2, 3, (1, 2, 3), (1, 2, 2), (0, 1, 1), (1, 1, 2), bias=False),
        ((1, 2, 4, 7, 9),),
    ),
}
QUANTIZED: dict[str, tuple[Function, tuple[tuple[int, ...], ...]]] = {
    "dot": (torch.dot, ((5,), (5,))),
    "matrix_by_vector": (torch.mv, ((3, 5), (5,))),
    "products_of_shapes": (torch.matmul, ((2, 1, 3, 4), (5, 4, 6))),
    "row_by_products": (torch.matmul, ((4,), (5, 4, 3))),
    "products_by_column": (torch.matmul, ((5, 3, 4), (4,))),
    "inputs_joined": (lambda x, y: torch.cat([x, y], 1), (IMAGE, IMAGE)),
    "inputs_moved": (lambda x: x.permute(0, 2, 3, 1), (IMAGE,)),
    "inputs_pooled": (lambda x: F.max_pool2d(x, 2), (IMAGE,)),
    "inputs_split": (lambda x: x.split(2, 1)[1], (IMAGE,)),
    "padded_by_more": (
        nn.Sequential(nn.Hardtanh(0, 0.5), nn.ConstantPad2d(1, 3.0), nn.Conv2d(3, 2, 3)),
        (IMAGE,),
    ),
    "plus_number": (lambda x: torch.ops.aten.add.Scalar(x, 1.5, 2), (IMAGE,)),
    "views_around_layer": (
        nn.Sequential(nn.Flatten(0), nn.Linear(8, 6), nn.Unflatten(0, (2, 3))),
        ((2, 4),),
    ),
}


def drawn(shapes: tuple[tuple[int, ...], ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def outside(program: torch.export.ExportedProgram) -> set[str]:
    """Return what is beside the one delegate of a program."""
    targets = [n.target for n in program.graph.nodes if n.op == "call_function"]
    assert targets.count(CALL_DELEGATE) == 1
    names = {getattr(target, "__name__", str(target)) for target in targets}
    return names - {"executorch_call_delegate", "getitem"}


@pytest.mark.parametrize("name", BOTH)
def test_floats_are_those_of_eager(name: str) -> None:
    function, shapes = BOTH[name]
    model, inputs = Whole(function).eval(), drawn(shapes)
    program = lower(model, *inputs, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")))
    assert outside(program) == set()
    (actual,) = interpreted(program, *inputs)
    torch.testing.assert_close(actual, model(*inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [*BOTH, *QUANTIZED])
def test_integers_are_those_of_the_quantized_program(name: str) -> None:
    function, shapes = (BOTH | QUANTIZED)[name]
    inputs, spec = drawn(shapes), TosaCompileSpec("TOSA-1.0+INT")
    program = torch.export.export(Whole(function).eval(), tuple(inputs))
    prepared = prepare_pt2e(program.module(check_guards=False), TOSAQuantizer(spec))
    prepared(*inputs)
    model = convert_pt2e(prepared)
    program = lower(model, *inputs, partitioner=TOSAPartitioner(spec))
    assert outside(program) <= {"quantize_per_tensor.default", "dequantize_per_tensor.default"}
    (last,) = program.graph.output_node().args[0]
    (actual,) = interpreted(program, *inputs)
    steps = (actual - model(*inputs)).abs() / last.args[1]
    assert float(steps.max()) <= 1.01


def test_two_results_of_max_stay_whole() -> None:
    x = torch.randn(3, 4)
    program = lower(
        Whole(lambda x: x.max(1)), x, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    )
    assert torch.ops.aten.max.dim in {n.target for n in program.graph.nodes}
