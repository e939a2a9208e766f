# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import keyword_spotting
import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_backend_arm.tosa import Op
from etx_exir.errors import BackendError
from etx_quant import QuantizationError, quantize, quantize_edges
from lowered import delegates, largest_step, lower, operators
from torch import Tensor, nn


class Pair(nn.Module):
    """What is made of two inputs, limited from below."""

    def __init__(self, combine: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.combine = combine

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.relu(self.combine(x, y))


CASES = {
    "conv": nn.Conv2d(3, 8, 3),
    "conv_relu": nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.ReLU()),
    "conv_hardtanh": nn.Sequential(nn.Conv2d(3, 8, 3), nn.Hardtanh(-0.25, 0.25)),
    "depthwise": nn.Sequential(nn.Conv2d(3, 6, 3, groups=3, dilation=2), nn.ReLU6()),
    "avg_pool": nn.Sequential(nn.Conv2d(3, 8, 1), nn.AvgPool2d(3, 2)),
    "max_pool": nn.Sequential(nn.Conv2d(3, 8, 1), nn.MaxPool2d(3, 2, padding=1)),
    "mean": nn.Sequential(nn.Conv2d(3, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "adaptive": nn.Sequential(nn.Conv2d(3, 8, 1), nn.AdaptiveAvgPool2d((3, 4))),
    "line": nn.Sequential(
        nn.Flatten(2),
        nn.Conv1d(3, 8, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv1d(8, 8, 3, groups=8, dilation=2),
    ),
    "line_pools": nn.Sequential(
        nn.Flatten(2), nn.Conv1d(3, 8, 3), nn.AvgPool1d(4), nn.MaxPool1d(3, 2)
    ),
    "linear": nn.Linear(16, 5),
    "linear_clamp": nn.Sequential(nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 4, bias=False)),
    "transposed": nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
    "permute": nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(2), nn.Linear(140, 3)),
}


def prepared(model: nn.Module) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    shape = (2, 3, 12, 16)
    quantized = quantize(model.eval(), [(torch.randn(shape),) for _ in range(4)], TOSAQuantizer())
    quantize_edges(quantized)
    return quantized, torch.randint(-128, 128, shape, dtype=torch.int8)


@pytest.mark.parametrize("name", CASES)
def test_reference_model_is_one_step_from_the_quantized_model(name: str) -> None:
    model, x = prepared(CASES[name])
    program = lower(model, x, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+INT")))
    (delegate,) = delegates(program)
    others = [n for n in program.graph.nodes if n.op == "call_function"]
    assert len(others) == 2  # the call and its result
    assert largest_step(delegate.processed_bytes, model, x) <= 1


@pytest.mark.parametrize("combine", [torch.add, torch.sub, torch.mul])
def test_two_activations_make_one(combine: Callable[[Tensor, Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    shapes = ((1, 4, 5, 6), (1, 4, 1, 1))
    batches = [tuple(torch.randn(shape) * 3 for shape in shapes) for _ in range(4)]
    model = quantize(Pair(combine).eval(), batches, TOSAQuantizer())
    quantize_edges(model)
    pair = [torch.randint(-128, 128, shape, dtype=torch.int8) for shape in shapes]
    (delegate,) = delegates(lower(model, *pair))
    assert largest_step(delegate.processed_bytes, model, *pair) <= 1


def test_a_whole_network_is_one_delegate() -> None:
    model, (x,) = keyword_spotting.quantized(), keyword_spotting.samples(1)
    (delegate,) = delegates(lower(model, x))
    graph = delegate.processed_bytes
    assert Counter(operators(graph)) == {
        Op.CONV2D: 6,
        Op.DEPTHWISE_CONV2D: 5,  # one of them is the average pool
        Op.RESCALE: 11,
        Op.RESHAPE: 2,
    }
    assert largest_step(graph, model, x) <= 1


def test_floats_are_no_program_of_integers() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    spec = TosaCompileSpec("TOSA-1.0+INT")
    said = r"TOSA-1.0\+INT computes integers.*aten.convolution.default.*is float32; quantize the"
    with pytest.raises(BackendError, match=said):
        lower(model, torch.randn(1, 3, 8, 8), partitioner=TOSAPartitioner(spec))


def test_a_float_specification_is_refused_by_the_quantizer() -> None:
    with pytest.raises(QuantizationError, match=r"TOSA-1\.0\+FP has floats only"):
        TOSAQuantizer(TosaCompileSpec("TOSA-1.0+FP"))
