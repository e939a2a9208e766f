# SPDX-License-Identifier: BSD-3-Clause
"""Write one model of ``footprint.py`` for one runtime, and the inputs of its calls.

usage: footprint_models.py {etx,executorch,litert} MODEL FILE [INPUTS.npz]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interop"))

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Chain(nn.Module):
    """So many operators on one element: each needs the one before."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(self.length // 4):
            x = torch.clamp((x + y) * y - x, -3.0, 3.0)
        return x


class RootMeanSquare(nn.Module):
    """x / sqrt(mean(x^2)), scaled by channel."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.scale


class Layer(nn.Module):
    """Attention to the cache and the new token, then a gated linear unit."""

    def __init__(self, dim: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.attention_norm, self.hidden_norm = RootMeanSquare(dim), RootMeanSquare(dim)
        self.query, self.key, self.value, self.output = (
            nn.Linear(dim, dim, bias=False) for _ in range(4)
        )
        self.gate, self.up = (nn.Linear(dim, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, dim, bias=False)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(1, 1, self.heads, self.width).transpose(1, 2)

    def forward(
        self, x: torch.Tensor, turn: Callable[[torch.Tensor], torch.Tensor], cache: Any
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        keys, values, mask = cache
        y = self.attention_norm(x)
        query = turn(self.split(self.query(y))) * self.width**-0.5
        key, value = turn(self.split(self.key(y))), self.split(self.value(y))
        scores = torch.cat([query @ keys.mT + mask, query @ key.mT], -1)
        mixed = torch.softmax(scores, -1) @ torch.cat([values, value], -2)
        x = x + self.output(mixed.transpose(1, 2).reshape(x.shape))
        y = self.hidden_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), key, value


class Llama(nn.Module):
    """One step of a decoder of 110 million parameters, 438 MB; the caller keeps the cache."""

    def __init__(self, dim: int = 768, layers: int = 12, heads: int = 12) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32000, dim)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.layers = nn.ModuleList(Layer(dim, heads, 2048) for _ in range(layers))
        self.norm = RootMeanSquare(dim)
        half = dim // heads // 2
        angles = torch.outer(torch.arange(256.0), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(
        self, token: torch.Tensor, position: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        cos, sin = self.cos[position], self.sin[position]

        def turn(x: torch.Tensor) -> torch.Tensor:
            a, b = x.chunk(2, -1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

        mask = torch.where(torch.arange(keys.shape[3]) < position, 0.0, -1e9)
        x = self.embedding(token)
        new_keys, new_values = [], []
        for index, layer in enumerate(self.layers):
            x, key, value = layer(x, turn, (keys[index], values[index], mask))
            new_keys.append(key)
            new_values.append(value)
        logits = F.linear(self.norm(x), self.embedding.weight)
        return logits, torch.stack(new_keys), torch.stack(new_values)


def chain(length: int) -> Built:
    return Chain(length).eval(), (torch.tensor([0.5]), torch.tensor([0.75]))


def mobilenet() -> Built:
    from modelset import build

    built = build("mobilenet_v2")
    return built.module, built.example


def llama() -> Built:
    torch.manual_seed(0)
    cache = (torch.randn(12, 1, 12, 255, 64) for _ in range(2))
    return Llama().eval(), (torch.tensor([[17]]), torch.tensor([128]), *cache)


MODELS: dict[str, Callable[[], Built]] = {
    "chain100": lambda: chain(100),
    "chain300": lambda: chain(300),
    "mobilenet_v2": mobilenet,
    "llama110m": llama,
}


def main(runtime: str, model: str, path: Path, inputs: Path | None) -> None:
    """Build, export, lower; what is a file is written under another name first."""
    module, example = MODELS[model]()
    part = path.with_name(f"part-{path.name}")
    with torch.no_grad():
        if runtime == "litert":
            import litert_torch

            litert_torch.convert(module, example).export(str(part))
        else:
            from lower import EXPORTERS

            EXPORTERS[runtime](torch.export.export(module, example), part)
    part.rename(path)
    if inputs:
        np.savez(inputs, *(tensor.numpy() for tensor in example))


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0], words[1], Path(words[2]), Path(words[3]) if words[3:] else None)
