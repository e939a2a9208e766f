# SPDX-License-Identifier: BSD-3-Clause
"""Integers of one scale become those of another exactly, whatever XNNPACK's multipliers hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import etx_runtime
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from etx_backend_xnnpack.builder import Affine
from etx_backend_xnnpack.nodes.scales import converts
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from torch import Tensor, nn
from torch.nn import functional as F

ops = torch.ops.quantized_decomposed
FULL = (-128, 127, torch.int8)


def rounded(x: Tensor, scale: float, zero_point: int) -> Tensor:
    integers = ops.quantize_per_tensor(x, scale, zero_point, *FULL)
    numbers: Tensor = ops.dequantize_per_tensor(integers, scale, zero_point, *FULL)
    return numbers


class Joined(nn.Module):
    """Sigmoids, whose scale is fixed, beside what has another."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        x = rounded(x, 0.031, 3)
        y = rounded(rounded(torch.sigmoid(x), 1 / 256, -128), self.scale, 9)
        z = rounded(x, self.scale, 9)
        return rounded(torch.cat([y, z], 1), self.scale, 9)


@pytest.mark.parametrize("scale", [0.0175, 0.031, 1 / 64, 0.6])
def test_what_is_joined_with_another_scale_is_exact(scale: float) -> None:
    torch.manual_seed(0)
    x, module = torch.randn(1, 4, 16, 16), Joined(scale)
    program = torch.export.export(module, (x,))
    partitioner = XnnpackPartitioner(heavy_only=False)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    assert (((found - module(x)) / scale).abs() > 0.5).float().mean() < 0.003


@pytest.mark.parametrize(
    ("ratio", "exact"),
    [(1.0, True), (2.0, True), (0.25, False), (0.22316, False), (2.0**-9, False), (2**7, False)],
)
def test_which_multipliers_are_exact(ratio: float, exact: bool) -> None:
    assert converts(Affine(ratio, 5), Affine(1.0, 0)) == exact


class Weighted(nn.Module):
    """A layer of int8 numbers, each channel of its weight with a scale of its own."""

    def __init__(self, function: Callable[..., Tensor], shape: list[int], scale: float) -> None:
        super().__init__()
        self.function, self.scale = function, scale
        integers = torch.randint(-127, 128, shape, dtype=torch.int8)
        self.weight, self.scales = nn.Buffer(integers), nn.Buffer(torch.rand(shape[0]) / 50)
        self.zeros, self.bias = nn.Buffer(torch.zeros(shape[0]).long()), nn.Buffer(torch.randn(8))

    def forward(self, x: Tensor) -> Tensor:
        weight = ops.dequantize_per_channel(
            self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        result: Tensor = self.function(rounded(x, 0.05, 3), weight, self.bias)
        return rounded(result, self.scale, -5)


LAYERS: dict[str, tuple[Callable[..., Tensor], list[int], list[int]]] = {
    "linear": (F.linear, [8, 16], [3, 16]),
    "conv": (F.conv2d, [8, 4, 3, 3], [1, 4, 7, 7]),
    "depthwise": (lambda x, w, b: F.conv2d(x, w, b, groups=8), [8, 1, 1, 1], [1, 8, 7, 7]),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("scale", [0.1, 2**-20])
def test_results_that_were_nearly_nothing_load(name: str, scale: float) -> None:
    """XNNPACK refuses multipliers of 256 and more."""
    torch.manual_seed(0)
    function, shape, sizes = LAYERS[name]
    module, x = Weighted(function, shape, scale), torch.randn(sizes)
    program = torch.export.export(module, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner(heavy_only=False)])
    found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    assert (found - module(x)).abs().max() < 1.01 * scale


def test_biases_of_weights_alone_move_no_channel() -> None:
    torch.manual_seed(0)
    channels, scale = 256, 0.017
    module = Weighted(
        lambda x, w, b: F.conv2d(x, w, b, groups=channels), [channels, 1, 1, 1], scale
    )
    module.weight.fill_(127)
    module.bias = nn.Buffer(torch.randn(channels))
    x = ((torch.arange(-128, 128.0) - 3) * 0.05).view(1, 1, 16, 16).expand(1, channels, 16, 16)
    program = torch.export.export(module, (x.contiguous(),))
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner(heavy_only=False)])
    found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x.contiguous())
    assert ((found - module(x)).abs() > scale / 2).float().mean() < 1e-3


LARGE: dict[str, tuple[Callable[..., Tensor], list[int], list[int]]] = {
    "linear": (F.linear, [8, 16], [3, 16]),
    "conv2d": (F.conv2d, [8, 4, 3, 3], [1, 4, 6, 6]),
    "depthwise": (partial(F.conv2d, groups=8), [8, 1, 3, 3], [1, 8, 6, 6]),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_bias_that_int32_does_not_hold_is_added_in_float(name: str) -> None:
    torch.manual_seed(0)
    function, shape, sizes = LARGE[name]
    module = Weighted(function, shape, 50.0)
    module.weight[3] = 0
    module.scales[3] = 2.0**-16
    module.bias[3] = 3000.0
    x = torch.randn(sizes)
    program = torch.export.export(module, (x,))
    partitioner = XnnpackPartitioner(heavy_only=False)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    found = etx_runtime.load(edge.to_executorch().buffer, outputs="torch")(x)
    torch.testing.assert_close(found, module(x), rtol=0, atol=50.0)
