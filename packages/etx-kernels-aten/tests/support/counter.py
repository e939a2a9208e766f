# SPDX-License-Identifier: BSD-3-Clause
"""A module with state."""

from __future__ import annotations

import torch
from torch import nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x):
        self.count.add_(x)
        return self.count * 2
