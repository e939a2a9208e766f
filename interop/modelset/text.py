# SPDX-License-Identifier: BSD-3-Clause
"""The demo's sentence encoder with its real weights."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from .built import Built

sys.path.append(str(Path(__file__).parents[2] / "demo"))


def minilm() -> Built:
    """Build all-MiniLM-L6-v2; the calls have three lengths, the last with masked tokens."""
    import minilm as encoder

    torch.manual_seed(0)

    def sentence(length: int, padding: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        mask = torch.ones(1, length, dtype=torch.int64)
        mask[:, length - padding :] = 0
        return torch.randint(1000, 30000, (1, length)), mask

    calls = [sentence(7), sentence(128), sentence(40, 9)]
    return Built(encoder.load(), sentence(16), calls, encoder.dynamic_shapes())
