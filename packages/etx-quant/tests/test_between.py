# SPDX-License-Identifier: BSD-3-Clause
"""What lies between two layers stays int8 on the device; what a norm reads stays float."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from etx_quant import compare, quantize
from torch import Tensor, nn
from torch.nn import functional as F

BETWEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "functions": lambda x: F.gelu(x) * F.hardswish(x) - F.silu(x).sigmoid(),
    "more functions": lambda x: F.leaky_relu(x.tanh()) + F.hardsigmoid(x) * F.elu(x),
    "numbers": lambda x: 3 - (x * 0.5 + 1) / 2.5,
    "powers": lambda x: (x**2 + 1).rsqrt(),
    "average pools": lambda x: F.avg_pool2d(F.adaptive_avg_pool2d(x, 4), 3, 2, ceil_mode=True),
    "pools of lines": lambda x: F.adaptive_avg_pool1d(F.avg_pool1d(x.flatten(2), 2), 4)[..., None],
    "max pools": lambda x: F.max_pool2d(F.max_pool2d(x, 3, 1, 1), 3, 2, ceil_mode=True),
    "reductions": lambda x: x.mean((2, 3), True) + x.sum(2, True) + x.amax((2, 3), True),
    "extremes": lambda x: torch.minimum(torch.maximum(x, F.silu(x)), x + 1),
    "joins": lambda x: torch.stack([torch.cat([x, x.relu()], 1), x.repeat(1, 2, 1, 1)], 1).sum(1),
    "pads": lambda x: F.pad(F.pad(x, (1, 1, 1, 1)), (2, 0, 1, 1), mode="reflect"),
    "replication": lambda x: F.pad(x, (2, 0, 1, 1), mode="replicate"),
    "nearest": lambda x: F.interpolate(F.interpolate(x, scale_factor=2), size=(5, 3)),
    "bilinear": lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
    "parts": lambda x: torch.cat([part * 2 for part in x.split(4, 1)], 1)[:, :, 1:-1, ::2],
    "orders": lambda x: x.roll(1, 2).flip(3)[:, [3, 1, 2]].transpose(2, 3),
    "shuffles": lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2),
}


class Between(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, 8, 3, padding="same")
        self.function = function
        self.behind = nn.ConvTranspose2d(function(torch.zeros(1, 8, 8, 8)).shape[1], 4, 2)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.behind(self.function(self.before(x)))
        return result


@pytest.mark.parametrize("name", BETWEEN)
def test_stays_in_integers(name: str) -> None:
    torch.manual_seed(0)
    model, calls = Between(BETWEEN[name]).eval(), [(torch.randn(1, 3, 8, 8),) for _ in range(2)]
    quantized = quantize(model, calls)
    manager = to_edge(torch.export.export(quantized, calls[0])).to_executorch()
    nodes = manager.exported_program().graph_module.graph.nodes
    values = [(str(n.target), n.meta.get("val")) for n in nodes if n.op == "call_function"]
    floats = [n for n, x in values if isinstance(x, Tensor) and x.is_floating_point()]
    assert floats == ["quantized_decomposed.dequantize_per_tensor.default"]  # of the result
    loaded = etx_runtime.load(manager.buffer)
    got = compare(model, lambda x: torch.as_tensor(loaded(x)), calls).sqnr
    assert got > max(compare(model, quantized, calls).sqnr - 1, 25)


class RMSNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


class Residual(nn.Module):
    """Rows whose sizes differ by much, which a norm makes equal."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.enter, self.norm = nn.Linear(16, 16, bias=False), norm
        self.leave = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        stream = x + self.enter(x)
        result: Tensor = self.norm(stream + self.leave(self.norm(stream)))
        return result


@pytest.mark.parametrize("norm", [nn.LayerNorm(16), RMSNorm()], ids=["layer", "RMS"])
def test_a_sum_that_a_norm_reads_stays_in_float(norm: nn.Module) -> None:
    torch.manual_seed(0)
    model, rows = Residual(norm).eval(), torch.randn(4, 16) * 10.0 ** -torch.arange(4)[:, None]
    quantized = quantize(model, [(rows,)])
    sums = [n for n in quantized.graph.nodes if n.target is torch.ops.aten.add.Tensor]
    streams = [n for n in sums if len(n.all_input_nodes) == 2]
    assert len(streams) == 2
    assert not any("quantize" in str(user.target) for n in streams for user in n.users)


def test_what_integers_are_added_to_stays_float() -> None:
    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Conv2d(3, 4, 1)
            self.number = torch.tensor([100])

        def forward(self, x: Tensor) -> Tensor:
            return (self.before(x) + self.number) * self.number

    x = torch.rand(1, 3, 4, 4)
    graph = quantize(Added().eval(), [(x,)]).graph
    (added,) = (node for node in graph.nodes if node.target is torch.ops.aten.add.Tensor)
    (product,) = added.users
    assert product.target is torch.ops.aten.mul.Tensor
    assert [user.op for user in product.users] == ["output"]
