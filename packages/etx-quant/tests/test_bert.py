# SPDX-License-Identifier: BSD-3-Clause
"""What Hugging Face's BertModel does besides its layers: numbers that index, and masks.

ExecuTorch's XNNPACKQuantizer makes the integer constants of such a graph float, and what they index
fails with an IndexError.
"""

from __future__ import annotations

import pytest
import torch
from etx_quant import XNNPACKQuantizer, compare, get_symmetric_quantization_config, quantize
from torch import Tensor, nn
from torch.nn import functional as F


class Bert(nn.Module):
    """Embeddings of positions that are computed, and attention with a mask of large numbers."""

    positions: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(20, 32)
        self.register_buffer("positions", torch.arange(20)[None])
        self.query, self.key, self.value, self.dense = (nn.Linear(32, 32) for _ in range(4))
        self.norm = nn.LayerNorm(32)
        self.pooler = nn.Linear(32, 32)

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        length = tokens.shape[1]
        index = torch.arange(length) + 1
        x = self.words(tokens) + self.places(self.positions[:, index * 1])
        large = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        q, k, v = (
            f(x).view(1, length, 4, 8).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-1, -2) / 8**0.5 + large
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(1, length, 32)
        x = self.norm(x + F.gelu(self.dense(mixed)))
        return x, torch.tanh(self.pooler(x[:, 0]))


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_is_quantized(is_dynamic: bool) -> None:
    torch.manual_seed(0)
    model = Bert().eval()
    calls = [(torch.randint(0, 50, (1, 9)), (torch.arange(9) < n)[None].long()) for n in (9, 6)]
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    quantized = quantize(model, calls, XNNPACKQuantizer().set_global(config))
    assert compare(model, quantized, calls).sqnr > 25
    nodes = list(quantized.graph.nodes)
    matrices = [n for n in nodes if "linear" in str(n.target)]
    assert len(matrices) == 5
    assert all("dequantize" in str(n.args[0]) and "dequantize" in str(n.args[1]) for n in matrices)
    scales = [n.args[1] for n in nodes if str(n.target).endswith("quantize_per_tensor.default")]
    assert all(float(scale) < 1 for scale in scales)  # the mask has no part in any range
