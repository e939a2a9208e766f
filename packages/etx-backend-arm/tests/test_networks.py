# SPDX-License-Identifier: BSD-3-Clause
"""Networks that are one delegate in both profiles, with few operators."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import reference_model
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.lowering import lower_program
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_exir import to_edge_transform_and_lower
from etx_quant import quantize, quantize_edges
from lowered import delegates, lower, operators
from torch import Tensor, nn

F = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes self.lstm")


class Encoder(nn.Module):
    """A layer of a transformer's encoder, normalized behind its sums."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        for norm in self.norms:
            nn.init.uniform_(norm.weight, 0.8, 1.2)
            nn.init.uniform_(norm.bias, -0.1, 0.1)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        size = width // self.heads
        parts = [layer(x).view(batch, tokens, self.heads, size) for layer in self.qkv]
        q, k, v = (part.transpose(1, 2) for part in parts)
        scores = torch.softmax(q @ k.transpose(-1, -2) / size**0.5, -1)
        x = self.norms[0](x + self.out((scores @ v).transpose(1, 2).reshape(x.shape)))
        return self.norms[1](x + self.feed(x))


class UNet(nn.Module):
    """Two levels."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([self.block(3, 8), self.block(8, 16), self.block(16, 32)])
        self.up = nn.ModuleList([self.block(32, 16), self.block(16, 8)])
        self.larger = nn.ModuleList([nn.ConvTranspose2d(2 * n, n, 2, 2) for n in (16, 8)])
        self.out = nn.Conv2d(8, 2, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Sequential:
        layers = (nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down[0](x)
        second = self.down[1](F.max_pool2d(first, 2))
        x = self.down[2](F.max_pool2d(second, 2))
        x = self.up[0](torch.cat([self.larger[0](x), second], 1))
        return self.out(self.up[1](torch.cat([self.larger[1](x), first], 1)))


class Recurrent(nn.Module):
    """An LSTM of eight steps."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 32, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


NETWORKS = {
    "encoder": (Encoder, (1, 16, 64), {"FP": 48, "INT": 108}),
    "lstm": (Recurrent, (1, 8, 16), {"FP": 98, "INT": 151}),
    "unet": (UNet, (1, 3, 32, 32), {"FP": 19, "INT": 24}),
}
"""Each with an input's shape and how many operators it may take without constants."""
NARROW = {"encoder": 128, "lstm": 175, "unet": 24}
"""How many it may take on targets whose tables have 256 entries."""
TARGETS = ("ethos-u55-128", "ethos-u65-512", "ethos-u55-256")
ROWS = [(name, profile) for name, row in NETWORKS.items() for profile in row[2]]


def made(name: str) -> tuple[nn.Module, list[Tensor]]:
    create, shape, _ = NETWORKS[name]
    torch.manual_seed(0)
    return create().eval(), [torch.randn(shape) for _ in range(5)]


def in_integers(name: str) -> tuple[nn.Module, Tensor]:
    model, (x, *others) = made(name)
    quantized = quantize(model, [(each,) for each in others], TOSAQuantizer())
    quantize_edges(quantized)
    return quantized, torch.randint(-128, 128, x.shape, dtype=torch.int8)


@pytest.mark.parametrize(("name", "target"), list(zip(NARROW, TARGETS, strict=True)))
def test_an_npu_runs_a_network_as_one_delegate(name: str, target: str) -> None:
    model, x = in_integers(name)
    partitioner = EthosUPartitioner(EthosUCompileSpec(target))
    program = torch.export.export(model, (x,))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    lowered = edge.exported_program("forward")
    (delegate,) = delegates(lowered)
    assert len([n for n in lowered.graph.nodes if n.op == "call_function"]) == 2
    graph = lower_program(delegate.original_module, narrow_tables=True).serialize()
    assert len(operators(graph)) <= NARROW[name]
    (expected,) = reference_model.run(graph, x.numpy())
    y = etx_runtime.load(bytes(edge.to_executorch().buffer))(x.numpy())
    np.testing.assert_array_equal(y, expected)
    assert noise(torch.from_numpy(expected), model(x)) > 28


def noise(actual: Tensor, expected: Tensor) -> float:
    """Return signal to error in dB."""
    actual, expected = actual.double(), expected.double()
    error = (actual - expected).pow(2).sum() / (expected - expected.mean()).pow(2).sum()
    return float(-10 * error.log10())


@pytest.mark.parametrize(("name", "profile"), ROWS)
def test_a_network_is_one_delegate_of_few_operators(name: str, profile: str) -> None:
    model, (x, *_) = made(name)
    if profile == "INT":
        model, x = in_integers(name)
    spec = TosaCompileSpec(f"TOSA-1.0+{profile}")
    (delegate,) = delegates(lower(model, x, partitioner=TOSAPartitioner(spec)))
    graph = delegate.processed_bytes
    assert len(operators(graph)) <= NETWORKS[name][2][profile]
    (result,) = reference_model.run(graph, x.numpy())
    with torch.no_grad():
        actual, expected = torch.from_numpy(result).double(), model(x).double()
    if profile == "FP":
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    else:
        assert noise(actual, expected) > 25
