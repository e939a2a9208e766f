# SPDX-License-Identifier: BSD-3-Clause
"""The keyword spotting network of MLPerf Tiny (DS-CNN), seeded, its batch norms settled."""

from __future__ import annotations

from functools import cache

import torch
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_quant import quantize, quantize_edges
from torch import nn
from torch.fx import GraphModule

SHAPE = (1, 1, 49, 10)
CHANNELS = 64


def block(kernel: int, groups: int) -> list[nn.Module]:
    """Return a convolution, its norm and a clamp."""
    conv = nn.Conv2d(CHANNELS, CHANNELS, kernel, padding=kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(CHANNELS), nn.ReLU()]


def network() -> nn.Module:
    """Return the network in float32."""
    torch.manual_seed(0)
    stem = nn.Conv2d(1, CHANNELS, (10, 4), stride=2, padding=(5, 1), bias=False)
    layers = [stem, nn.BatchNorm2d(CHANNELS), nn.ReLU()]
    for _ in range(4):
        layers += block(3, CHANNELS) + block(1, 1)
    layers += [nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(CHANNELS, 12)]
    model = nn.Sequential(*layers)
    with torch.no_grad():
        for _ in range(8):
            model(torch.randn(8, *SHAPE[1:]))
    return model.eval()


@cache
def quantized() -> GraphModule:
    """Return the network in int8, which takes and returns int8."""
    batches = [(torch.randn(SHAPE),) for _ in range(8)]
    model = quantize(network(), batches, TOSAQuantizer())
    quantize_edges(model)
    return model


def samples(count: int) -> list[torch.Tensor]:
    """Return inputs of the network in int8."""
    torch.manual_seed(1)
    return [torch.randint(-128, 128, SHAPE, dtype=torch.int8) for _ in range(count)]
