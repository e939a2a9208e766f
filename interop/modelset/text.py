# SPDX-License-Identifier: BSD-3-Clause
"""The demo's sentence encoder with its real weights."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from .built import Built

sys.path.append(str(Path(__file__).parents[2] / "demo"))


def minilm() -> Built:
    """Build all-MiniLM-L6-v2; the calls have three lengths."""
    import minilm as encoder

    torch.manual_seed(0)
    example, dynamic_shapes = encoder.example()
    calls = [(torch.randint(1000, 30000, (1, length)),) for length in (7, 128, 40)]
    return Built(encoder.load(), example, calls, dynamic_shapes)
