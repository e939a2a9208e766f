# SPDX-License-Identifier: BSD-3-Clause
"""Small models for control flow and for nested inputs and outputs."""

from __future__ import annotations

import torch
from torch import nn

from .built import Built


class Branch(nn.Module):
    """One of two layers, chosen by the input's sign."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen: torch.Tensor = torch.cond(
            x.sum() > 0, lambda x: self.left(x).relu(), lambda x: self.right(x) - 1, (x,)
        )
        return chosen


def branch() -> Built:
    """Build the model with a ``cond``; the calls take both branches."""
    torch.manual_seed(0)
    x = torch.rand(2, 8)
    return Built(Branch().eval(), (x,), [(x + 0.5,), (-x,)])


class Nested(nn.Module):
    """A dict and a tuple in, a dict of a tuple and a tensor out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(
        self, features: dict[str, torch.Tensor], pair: tuple[torch.Tensor, torch.Tensor]
    ) -> dict[str, object]:
        mixed = self.layer(features["left"] * features["right"])
        return {"pair": (mixed + pair[0], mixed - pair[1]), "sum": mixed.sum(-1)}


def nested() -> Built:
    """Build the model with nested containers."""
    torch.manual_seed(0)

    def arguments() -> tuple[object, ...]:
        features = {"left": torch.randn(3, 6), "right": torch.randn(3, 6)}
        return features, (torch.randn(3, 4), torch.randn(3, 4))

    return Built(Nested().eval(), arguments(), [arguments(), arguments()])


class Chain(nn.Module):
    """One hundred one-element additions of run-time inputs: nothing to fold or to fuse."""

    LENGTH = 100

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        for _ in range(self.LENGTH):
            x = x + step
        return x


def chain() -> Built:
    """Build the chain of additions that measures what an instruction costs."""
    one = torch.ones(1)
    return Built(Chain().eval(), (one, one * 3), [(one, one * 0.5), (one * 2, one)])
