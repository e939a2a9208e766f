# SPDX-License-Identifier: BSD-3-Clause
"""Small models with the parts of large ones: a vision transformer, a step of a Llama."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Self-attention as timm writes it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, width = x.shape
        qkv = self.qkv(x).reshape(batch, rows, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v)
        result: torch.Tensor = self.out(mixed.transpose(1, 2).reshape(batch, rows, width))
        return result


def seen_once(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attention that sees what a comparison says."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask > -0.3)


def seen_twice(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Two attentions in a row that see the same of `k` and `v`."""
    seen = mask > -0.3
    q = F.scaled_dot_product_attention(q.cos(), k, v, attn_mask=seen)
    return F.scaled_dot_product_attention(q.cos(), k, v, attn_mask=seen)


class Encoder(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mlp = nn.Sequential(up, nn.GELU(), down)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        result: torch.Tensor = x + self.mlp(self.behind(x))
        return result


class VisionTransformer(nn.Module):
    """Patches, a class token, layers, a head."""

    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width))
        self.layers = nn.Sequential(*(Encoder(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        result: torch.Tensor = self.head(self.norm(self.layers(x))[:, 0])
        return result


class Decoder(nn.Module):
    """A layer of a Llama: what it remembers comes in and goes out."""

    def __init__(self, width: int, heads: int, shared: int, hidden: int) -> None:
        super().__init__()
        self.size = width // heads
        kept = shared * self.size
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, kept, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.before, self.behind = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.size)).transpose(1, 2)

    def forward(
        self, x: torch.Tensor, turn: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = self.before(x)
        q, k, v = (self.split(f(y)) for f in (self.q, self.k, self.v))
        keys = torch.cat([keys, rotated(k, turn)], 2)
        values = torch.cat([values, v], 2)
        mixed = F.scaled_dot_product_attention(rotated(q, turn), keys, values, enable_gqa=True)
        x = x + self.o(mixed.transpose(1, 2).flatten(2))
        y = self.behind(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), keys, values


def rotated(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Turn pairs of halves by angles whose cosines and sines are `turn`."""
    a, b = x.chunk(2, -1)
    cos, sin = turn.unbind(0)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class LlamaStep(nn.Module):
    """The layers of a Llama and its head, for one embedded token."""

    def __init__(self, layers: int = 2, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Decoder(width, 4, 2, 96) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, 50, bias=False)

    def forward(
        self, x: torch.Tensor, turn: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        now: list[torch.Tensor] = []
        for layer, keys, values in zip(self.layers, past[::2], past[1::2], strict=True):
            x, keys, values = layer(x, turn, keys, values)
            now += [keys, values]
        return (self.head(self.norm(x)), *now)


def cached_attention(
    q: torch.Tensor,
    cache: torch.Tensor,
    new: torch.Tensor,
    mask: torch.Tensor,
    *,
    seen: float | None,
    any_number: bool = False,
) -> torch.Tensor:
    """Attend to what is put into a cache at places 5, 2, 7 and 10, and to the rest of it.

    For `any_number` the places are 1, 2 and so on.
    """
    places = torch.arange(1, 1 + new.shape[2]) if any_number else torch.tensor([5, 2, 7, 10])
    keys, values = cache.clone(), cache * 2
    keys[:, :, places] = new
    values[:, :, places] = new.cos()
    shown = mask if seen is None else mask > seen
    result: torch.Tensor = F.scaled_dot_product_attention(
        q, keys, values, attn_mask=shown, enable_gqa=q.shape[1] > cache.shape[1]
    )
    return result


ADDED_MASK = (
    "aten.gt.Scalar",
    "aten.scalar_tensor.default",
    "aten.scalar_tensor.default",
    "aten.where.self",
)
HIDDEN = ("aten.index.Tensor", "aten.index_put.default", "aten.scalar_tensor.default")
PLACES = ("aten.arange.start_step", "aten.sym_size.int")
NEW = torch.export.Dim("new", max=9)


def _shapes(heads: int, new: int) -> tuple[tuple[int, ...], ...]:
    return (1, heads, new, 4), (1, 2, 12, 4), (1, 2, new, 4), (new, 12)


CACHED = tuple(
    (
        f"{name}_of_any_number" if free else name,
        partial(cached_attention, seen=seen, any_number=free),
        _shapes(heads, 4),
        {
            "outside": (
                *HIDDEN,
                *(() if seen is None else ADDED_MASK),
                *(PLACES if free else ()),
            ),
            "dynamic": ({2: NEW}, None, {2: NEW}, {0: NEW}) if free else None,
            "calls": [_shapes(heads, new) for new in (1, 9)] if free else (),
        },
    )
    for free in (False, True)
    for name, seen, heads in (
        ("added", None, 2),
        ("seen", -1.0, 2),
        ("hidden_rows", 0.9, 2),
        ("of_groups", -1.0, 4),
        ("of_groups_hidden", 0.9, 12),
    )
)
"""Name, function, shapes of its arguments, and what else is said of the case."""
