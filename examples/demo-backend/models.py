# SPDX-License-Identifier: BSD-3-Clause
"""Small models whose pointwise chains the demonstration backend takes, with their inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch._higher_order_ops import while_loop
from torch.nn import functional


class Chain(nn.Module):
    """One chain, from inputs to output."""

    example_inputs = (torch.linspace(-3, 3, 1000), torch.linspace(2, -2, 1000))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = (x * 2 + 1).relu() - y * 0.5
        return torch.maximum(h.abs(), x) * y + functional.hardswish(h)


class Gated(nn.Module):
    """Chains between matrix products; a weight that both chains use is stored once."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, 64).reshape(4, 16))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = functional.silu(self.first(x)) * self.gain * scale.sum()
        y = torch.clamp(self.second(h) + self.gain, -1, 1)
        return y.sigmoid() * x, functional.leaky_relu(h - 0.1, 0.2).exp()


class EveryOperation(nn.Module):
    """Every operation of the table, on a batch of any size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positive = x.abs() + 0.5
        y = positive.sqrt() / positive.reciprocal() - functional.hardtanh(-x).tanh()
        return torch.minimum(y, functional.hardsigmoid(x) * 3) + torch.maximum(x, y / 4)


class Branching(nn.Module):
    """Chains in the branches of a condition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(
            x.sum() > 0, lambda x: (x * 2 + 1).relu(), lambda x: (x.abs() - 1) * x, (x,)
        )


class Looping(nn.Module):
    """A chain in the body of a loop."""

    def forward(self, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        def body(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, (x * 0.5 + 1).tanh()

        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, _: i < n, body, (start, x))[1]


class Stateful(nn.Module):
    """A chain that reads and writes a buffer, which stays the program's."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.full((8,), 0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.copy_((self.state * 0.9 + x).tanh())
        return self.state * 2 - x


def models() -> dict[str, tuple[nn.Module, list[tuple[torch.Tensor, ...]], Any]]:
    """Return by name a model, the inputs of its calls, and its dynamic shapes."""
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", max=300)
    return {
        "chain": (Chain(), [Chain.example_inputs], None),
        "gated": (Gated(), [(torch.randn(4, 16), torch.randn(3)) for _ in range(2)], None),
        "branching": (Branching(), [(torch.ones(5),), (-torch.ones(5),)], None),
        "looping": (Looping(), [(torch.tensor(n), torch.randn(6)) for n in (3, 0)], None),
        "stateful": (Stateful(), [(torch.randn(8),) for _ in range(3)], None),
        "every": (EveryOperation(), [(torch.randn(n, 7),) for n in (5, 1, 300)], ({0: batch},)),
    }
