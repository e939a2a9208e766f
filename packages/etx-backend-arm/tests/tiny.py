# SPDX-License-Identifier: BSD-3-Clause
"""The four networks of MLPerf Tiny in torch: random weights of a seed, settled batch norms."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn


def conv(
    inputs: int, outputs: int, size: int | tuple[int, int], **options: object
) -> nn.Sequential:
    """Return a convolution without bias, a batch norm and a relu."""
    layer = nn.Conv2d(inputs, outputs, size, bias=False, **options)  # type: ignore[arg-type]
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


def separable(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Return a depthwise 3x3 and a 1x1 convolution."""
    depthwise = conv(inputs, inputs, 3, stride=stride, padding=1, groups=inputs)
    return nn.Sequential(*depthwise, *conv(inputs, outputs, 1))


class Residual(nn.Module):
    """Two 3x3 convolutions and what is added to them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = conv(inputs, outputs, 3, stride=stride, padding=1)
        self.second = conv(outputs, outputs, 3, padding=1)[:2]
        self.around: nn.Module = nn.Identity()
        if stride != 1:
            self.around = nn.Conv2d(inputs, outputs, 1, stride=stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.around(x))


def _kws() -> nn.Module:
    stem = conv(1, 64, (10, 4), stride=2, padding=(5, 1))
    blocks = [separable(64, 64) for _ in range(4)]
    return nn.Sequential(stem, *blocks, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Linear(64, 12))


def _ic() -> nn.Module:
    blocks = [Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)]
    head = [nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(conv(3, 16, 3, padding=1), *blocks, *head)


def _vww() -> nn.Module:
    widths = [8, 16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256]
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1]
    pairs = zip(widths, widths[1:], strides, strict=False)
    blocks = [separable(*pair) for pair in pairs]
    head = [nn.AvgPool2d(3), nn.Flatten(), nn.Linear(256, 2)]
    return nn.Sequential(conv(3, 8, 3, stride=2, padding=1), *blocks, *head)


def _ad() -> nn.Module:
    widths = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(128, 640))


SHAPES = {"kws": (1, 1, 49, 10), "ic": (1, 3, 32, 32), "vww": (1, 3, 96, 96), "ad": (1, 640)}
MAKE = {"kws": _kws, "ic": _ic, "vww": _vww, "ad": _ad}


@dataclass(frozen=True)
class Tiny:
    """A network for inference, and inputs to calibrate and try it with."""

    model: nn.Module
    inputs: list[tuple[torch.Tensor]]


def make(name: str, count: int = 8) -> Tiny:
    """Return a network by name with `count` inputs; the same ones each time."""
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = MAKE[name]()
    shape = SHAPES[name]
    model.train()
    with torch.no_grad():
        for _ in range(20):
            model(torch.randn(8, *shape[1:], generator=generator))
    model.eval().requires_grad_(False)
    return Tiny(model, [(torch.randn(shape, generator=generator),) for _ in range(count)])
