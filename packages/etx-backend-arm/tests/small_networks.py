# SPDX-License-Identifier: BSD-3-Clause
"""Networks of one operator behind quantized layers, all of them integers on a Cortex-M."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.cortex_m import operators as ops
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from torch import Tensor, nn
from torch.nn import functional as F

ROWS, IMAGE, STEPS = (2, 7, 12), (2, 4, 8, 8), (2, 3, 12)
Function = Callable[..., Tensor]


class Rows(nn.Module):
    """A function of two layers' results, (2, 7, 12)."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function
        self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.a(x), self.b(x))


class Image(nn.Module):
    """A function of a convolution's result, (2, 4, 8, 8)."""

    def __init__(self, function: Function, layer: nn.Module | None = None) -> None:
        super().__init__()
        self.function = function
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1), layer or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.function(self.a(x)))


class Recurrent(nn.Module):
    """States of a recurrent layer's steps, from (2, 3, 12)."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = kind(12, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.layer(x)[0]
        return states


class Cells(nn.Module):
    """The state of two steps of a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(12, 8)

    def forward(self, x: Tensor) -> Tensor:
        state: Tensor = self.cell(x[:, 1], self.cell(x[:, 0]))[0]
        return state


@dataclass(frozen=True)
class Small:
    """A network, the operator that it is about, and how many steps apart torch may be."""

    make: Callable[[], nn.Module]
    sizes: tuple[int, ...]
    operator: Any
    steps: int = 1


def rows(function: Function, operator: Any, steps: int = 1) -> Small:
    return Small(lambda: Rows(function), ROWS, operator, steps)


def image(function: Function, operator: Any, steps: int = 1) -> Small:
    return Small(lambda: Image(function), IMAGE, operator, steps)


def layer(make: Callable[[], nn.Module], operator: Any) -> Small:
    return Small(lambda: Image(lambda y: y, make()), IMAGE, operator, 2)


GROWING = {"stride": 2, "padding": 1, "output_padding": 1}
NETWORKS = {
    "sub": rows(lambda a, b: a - b, ops.ADD),
    "sub_relu": rows(lambda a, b: F.relu(a - b), ops.ADD),
    "add_row": rows(lambda a, b: a + b[:, :1], ops.ADD),
    "mul": rows(lambda a, b: a * b, ops.MUL),
    "squeeze": image(lambda y: y * y.sigmoid().mean((2, 3), keepdim=True), ops.MUL, 2),
    "div": rows(lambda a, b: a / (b.sigmoid() + 0.5), ops.DIV, 2),
    "div_number": rows(lambda a, b: a / 3 + b, ops.ACTIVATION, 2),
    "neg": rows(lambda a, b: torch.maximum(-a, b), ops.MAXIMUM),
    "min_row": rows(lambda a, b: torch.minimum(a, b[:, :1]), ops.MINIMUM),
    "softmax_rows": rows(lambda a, b: a.softmax(1), ops.SOFTMAX),
    "softmax_channels": image(lambda y: y.softmax(1), ops.SOFTMAX),
    "products": rows(lambda a, b: torch.bmm(a, b.transpose(1, 2)), ops.BATCH_MATMUL),
    "transpose": rows(lambda a, b: a.transpose(1, 2), ops.TRANSPOSE),
    "mean_points": image(lambda y: y.mean((2, 3)), ops.AVG_POOL2D),
    "mean_last": rows(lambda a, b: a.mean(-1), ops.AVG_POOL2D),
    "mean_first": rows(lambda a, b: a.mean(1, keepdim=True), ops.AVG_POOL2D),
    "avg_pool_padded": image(lambda y: F.avg_pool2d(y, 3, 2, 1), ops.AVG_POOL2D),
    "max_pool_beyond": image(lambda y: F.max_pool2d(y, 3, 2, ceil_mode=True), ops.MAX_POOL2D),
    "pad": image(lambda y: F.pad(y, (1, 2, 0, 1)), ops.PAD),
    "pad_rows": rows(lambda a, b: F.pad(a, (0, 0, 2, 1)), ops.PAD),
    "conv_uneven": layer(lambda: nn.Conv2d(4, 3, 4, padding="same"), ops.PAD),
    "conv_transposed": layer(lambda: nn.ConvTranspose2d(4, 5, 3, **GROWING), ops.TRANSPOSE_CONV2D),
    "conv_doubled": layer(lambda: nn.ConvTranspose2d(4, 5, 2, stride=2), ops.TRANSPOSE_CONV2D),
    "gelu": rows(lambda a, b: F.gelu(a), ops.ACTIVATION),
    "hardswish": image(F.hardswish, ops.ACTIVATION, 2),
    "lstm": Small(lambda: Recurrent(nn.LSTM), STEPS, ops.ACTIVATION, 2),
    "gru": Small(lambda: Recurrent(nn.GRU), STEPS, ops.ACTIVATION),
    "lstm_cell": Small(Cells, STEPS, ops.ACTIVATION),
    "cat": rows(lambda a, b: torch.cat([a, b], 1), ops.QUANTIZE),
}


def lowered(name: str) -> tuple[Any, nn.Module, Tensor]:
    """Return an edge program of `cortex_m::`, the quantized model, and an input of both."""
    small = NETWORKS[name]
    torch.manual_seed(3)
    net = small.make().eval()
    inputs = [(torch.randn(small.sizes),) for _ in range(4)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The tensor attribute")  # of torch.export, for nn.LSTM
        model = quantize(net, inputs, CortexMQuantizer())
    return lower_to_cortex_m(to_edge(torch.export.export(model, inputs[0]))), model, inputs[0][0]


def write(name: str, folder: Path) -> Path:
    """Write a network into `folder`."""
    path = folder / f"{name}.pte"
    lowered(name)[0].to_executorch(ExecutorchBackendConfig(target=None)).save(path)
    return path
