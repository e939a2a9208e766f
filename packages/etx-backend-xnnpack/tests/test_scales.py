# SPDX-License-Identifier: BSD-3-Clause
"""Integers of one scale become those of another exactly, whatever XNNPACK's multipliers hold."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from etx_backend_xnnpack.builder import Affine
from etx_backend_xnnpack.nodes.scales import converts
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_exir import to_edge_transform_and_lower
from torch import Tensor, nn

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
