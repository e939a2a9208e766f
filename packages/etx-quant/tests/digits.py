# SPDX-License-Identifier: BSD-3-Clause
"""A small convolutional network trained on scikit-learn's 8×8 digits."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class DigitsNet(nn.Module):
    """Two convolutions with a residual addition, pooling, and a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.refine = nn.Conv2d(16, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.widen = nn.Conv2d(16, 32, 3)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm(self.enter(x)))
        x = self.pool(x + F.relu(self.refine(x)))
        logits: torch.Tensor = self.head(F.relu(self.widen(x)).flatten(1))
        return logits


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images, labels, test images, labels; images are n×1×8×8 in [0, 1]."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, test = order[:1297], order[1297:]
    return images[train], labels[train], images[test], labels[test]


def train(images: torch.Tensor, labels: torch.Tensor) -> DigitsNet:
    """Train with a fixed seed; a few seconds."""
    torch.manual_seed(0)
    model = DigitsNet()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(12):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
    return model.eval()
