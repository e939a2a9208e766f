# SPDX-License-Identifier: BSD-3-Clause
"""Whole quantized networks, drawn by a number: what the board returns must be what the host does.

`drawn_networks.py FOLDER FIRST COUNT` writes `drawn_N.pte` of these numbers into a folder.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from torch import Tensor, nn
from torch.nn import functional as F

Function = Callable[[Tensor], Tensor]
BENT = (F.relu, F.relu6, torch.tanh, torch.sigmoid, F.hardswish, F.gelu, F.leaky_relu, F.elu)


class Step(nn.Module):
    """A function that may have layers."""

    def __init__(self, function: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.layers)


def _conv(draw: random.Random, channels: int, outputs: int, same: bool = False) -> nn.Module:
    groups = draw.choice([1, 1, channels if outputs % channels == 0 else 1])
    kernel = draw.choice([1, 2, 3, (1, 3), (3, 2)])
    if same:
        return nn.Conv2d(channels, outputs, 3, padding=1, groups=groups)
    window: dict[str, Any] = {"stride": draw.choice([1, 1, 2]), "padding": draw.choice([0, 1])}
    return nn.Conv2d(channels, outputs, kernel, groups=groups, bias=draw.random() < 0.8, **window)


def _step(draw: random.Random, x: Tensor, more: tuple[str, ...] = ()) -> Step:
    """Draw what follows an image: one of many kinds, or of ``more``."""
    channels, height, width = x.shape[1:]
    kinds = ["conv", "conv", "bent", "sum", "cat", "pad", "softmax", "turn", "up"]
    kinds += ["max", "mean"] if min(height, width) >= 4 else []
    kinds += more
    kind = draw.choice(kinds)
    bent, beside = draw.choice(BENT), _conv(draw, channels, channels, same=True)
    if kind == "conv":
        outputs = draw.choice([channels, 2 * channels, 3, 5])
        return Step(lambda x, layer: bent(layer(x)), _conv(draw, channels, outputs))
    if kind == "sum":
        way = draw.choice([torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum])
        return Step(lambda x, layer: way(x, layer(x)), beside)
    if kind == "cat":
        return Step(lambda x, layer: torch.cat([x, layer(x)], 1), beside)
    if kind == "pad":
        sides = [draw.randrange(3) for _ in range(4)]
        return Step(lambda x: F.pad(x, sides))
    if kind == "max":
        stride, padding = draw.choice([1, 2]), draw.choice([0, 1])
        return Step(lambda x: F.max_pool2d(x, 3, stride, padding))
    if kind == "mean":
        stride, padding = draw.choice([1, 2]), draw.choice([0, 1])
        return Step(lambda x: F.avg_pool2d(x, 2, stride, padding, count_include_pad=False))
    if kind == "transposed":
        size = draw.choice([2, 3])
        layer = nn.ConvTranspose2d(channels, draw.choice([channels, 3]), size, 2, size // 3)
        return Step(lambda x, layer: layer(x), layer)
    if kind == "parts":
        whole = channels // 2 * 2
        layers = [_conv(draw, whole // 2, draw.choice([2, 3])) for _ in range(2)] if whole else []
        return Step(_parts, *layers)
    if kind == "groups":
        layer = nn.Conv2d(channels, 2 * channels, 3, padding=1, groups=1 if channels % 2 else 2)
        return Step(lambda x, layer: layer(x), layer)
    begin = draw.randrange(min(channels, height))
    functions: dict[str, Function] = {
        "part": lambda x: x[:, begin:],
        "rows": lambda x: x[:, :, begin:],
        "bent": bent,
        "softmax": lambda x: x.softmax(1),
        "turn": lambda x: x.transpose(2, 3),
        "up": lambda x: F.interpolate(x, scale_factor=2.0) if x.shape[2] < 8 else x,
    }
    return Step(functions[kind])


def _parts(x: Tensor, *layers: nn.Module) -> Tensor:
    """Give each layer its part of the channels; join what is of one size."""
    if not layers:
        return x
    size = x.shape[1] // 2
    made = [layer(x[:, i * size : (i + 1) * size]) for i, layer in enumerate(layers)]
    least = [min(sizes) for sizes in zip(*(each.shape[2:] for each in made), strict=True)]
    return torch.cat([each[:, :, : least[0], : least[1]] for each in made], 1)


def draw_network(seed: int, more: tuple[str, ...] = ()) -> tuple[nn.Module, list[tuple[Tensor]]]:
    """Return a network of up to six steps behind a convolution, and inputs of it."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    sizes = (draw.choice([1, 2]), draw.randint(1, 4), draw.randint(5, 10), draw.randint(5, 10))
    inputs = [(torch.randn(sizes),) for _ in range(4)]
    steps: list[nn.Module] = [_conv(draw, sizes[1], draw.randint(2, 6), same=True)]
    with torch.no_grad():
        x = steps[0](inputs[0][0])
        for _ in range(draw.randint(2, 6)):
            if min(x.shape[2:]) < 3:
                break
            step = _step(draw, x, more)
            if 0 < step(x).numel() <= 4000:
                steps.append(step)
                x = step(x)
        channels, points = x.shape[1], x[0, 0].numel()
    if draw.random() < 0.5:
        steps += [Step(lambda x: x.mean((2, 3))), nn.Linear(channels, 7)]
    else:
        steps += [nn.Flatten(), nn.Linear(channels * points, 5)]
    return nn.Sequential(*steps).eval(), inputs


def lowered(seed: int) -> tuple[Any, nn.Module, Tensor]:
    """Return an edge program of `cortex_m::`, the quantized model, and an input of both."""
    net, inputs = draw_network(seed)
    model = quantize(net, inputs, CortexMQuantizer())
    return lower_to_cortex_m(to_edge(torch.export.export(model, inputs[0]))), model, inputs[0][0]


def write(seed: int, folder: Path) -> Path:
    """Write a network into `folder`."""
    path = folder / f"drawn_{seed}.pte"
    lowered(seed)[0].to_executorch(ExecutorchBackendConfig(target=None)).save(path)
    return path


if __name__ == "__main__":
    for number in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):
        print(write(number, Path(sys.argv[1])))
