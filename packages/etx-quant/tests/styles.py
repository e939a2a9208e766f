# SPDX-License-Identifier: BSD-3-Clause
"""Models in miniature, each of a style that torchvision, timm and transformers have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, WORDS = 24, 40


def layer(inputs: int, outputs: int, kernel: int = 3, groups: int = 1) -> nn.Sequential:
    """Return a convolution, its norm and a ReLU."""
    conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class Branches(nn.Module):
    """Inception: branches of several kernels, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.small = layer(3, 16), layer(16, 8, 1)
        self.large = nn.Sequential(layer(16, 4, 1), layer(4, 8, 5))
        self.pooled, self.head = layer(16, 8, 1), nn.Linear(24, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        parts = [self.small(x), self.large(x), self.pooled(F.max_pool2d(x, 3, 1, 1))]
        result: Tensor = self.head(F.adaptive_avg_pool2d(torch.cat(parts, 1), 1).flatten(1))
        return result


class Excited(nn.Module):
    """A shuffled half of the channels, squeezed and excited."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.part = layer(3, WIDTH), layer(12, 12, groups=12)
        self.squeeze, self.excite = nn.Conv2d(WIDTH, 8, 1), nn.Conv2d(8, WIDTH, 1)
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.stem(x).chunk(2, 1)
        x = torch.cat([a, self.part(b)], 1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        gate = self.excite(F.silu(self.squeeze(x.mean((2, 3), keepdim=True))))
        result: Tensor = self.head((x * F.hardsigmoid(gate)).mean((2, 3)))
        return result


class Windows(nn.Module):
    """Swin and ConvNeXt: norms over channels, windows that are rolled, merged neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, WIDTH, 2, 2), nn.LayerNorm(WIDTH)
        self.deep = nn.Conv2d(WIDTH, WIDTH, 7, padding=3, groups=WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.merge = nn.Linear(4 * WIDTH, 8, bias=False)

    def attend(self, x: Tensor) -> Tensor:
        n, h, w, c = x.shape
        x = x.roll((-2, -2), (1, 2)).view(n, h // 4, 4, w // 4, 4, c)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(x).reshape(-1, 16, 3, 3, c // 3).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1) * (c // 3) ** -0.5).softmax(-1)
        x = self.out((scores @ v).transpose(1, 2).reshape(-1, 16, c))
        x = x.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return x.roll((2, 2), (1, 2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x)
        x = x + F.gelu(self.norm(self.deep(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2)
        x = x.permute(0, 2, 3, 1)
        x = x + self.attend(self.norm(x))
        parts = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        result: Tensor = self.merge(torch.cat(parts, -1)).mean((1, 2))
        return result


class Resized(nn.Module):
    """A U-Net with one skip, and pixels that are shuffled."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = layer(3, 8), layer(8, 16)
        self.up, self.out = layer(24, 8), nn.Conv2d(8, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.down(x)
        deep = self.middle(F.max_pool2d(skip, 2))
        wide = F.interpolate(deep, scale_factor=2, mode="bilinear")
        result: Tensor = F.pixel_shuffle(self.out(self.up(torch.cat([wide, skip], 1))), 2)
        return result


class Words(nn.Module):
    """BERT: embeddings, a mask, a dict of results."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(8, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 3, 32, batch_first=True)
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        x = self.block(x, src_key_padding_mask=mask)
        return {"hidden": x, "scores": self.head(torch.tanh(x[:, 0]))}


class Several(nn.Module):
    """Two inputs, nested results, integers among them; a line and a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.norm = nn.Conv1d(8, 16, 3, padding=1), nn.BatchNorm1d(16)
        self.layer, self.more = nn.LSTM(16, 16, 2, batch_first=True, dropout=0.2), nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, lines: Tensor, more: Tensor) -> tuple[Any, ...]:
        x = F.avg_pool1d(F.relu(self.norm(self.line(lines))), 2)
        x = x + self.more(more).sigmoid()[..., None]
        y, (state, _) = self.layer(x.transpose(1, 2))
        scores = self.head(y)
        return scores, [state, scores.argmax(-1)]


def image() -> tuple[Tensor, ...]:
    return (torch.randn(2, 3, 16, 16),)


def words() -> tuple[Tensor, ...]:
    return torch.randint(0, WORDS, (2, 8)), torch.arange(8) >= torch.tensor([[8], [5]])


def lines() -> tuple[Tensor, ...]:
    return torch.randn(2, 8, 12), torch.randn(2, 8)


STYLES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "branches": (Branches, image),
    "excited": (Excited, image),
    "windows": (Windows, image),
    "resized": (Resized, image),
    "words": (Words, words),
    "several": (Several, lines),
}
