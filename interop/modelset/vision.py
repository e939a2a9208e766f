# SPDX-License-Identifier: BSD-3-Clause
"""Image classifiers of torchvision and timm with seeded weights, made testable.

As they come their outputs vanish: batch-norm statistics are taken from one seeded batch, and a
head that is zero or nearly so is drawn again.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import torch
from torch import nn

from .built import Built

SIZE = (3, 224, 224)


def model_code() -> types.ModuleType:
    """Import torchvision for its Python code; its compiled operators belong to another torch."""
    sys.modules.setdefault(
        "torchvision._meta_registrations", types.ModuleType("torchvision._meta_registrations")
    )
    import torchvision

    return torchvision


def settle(module: nn.Module, batch: torch.Tensor) -> nn.Module:
    """Give batch norms the statistics of ``batch`` and draw a vanishing head again."""
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
    for head in [m for m in module.modules() if isinstance(m, nn.Linear)][-1:]:
        if float(head.weight.detach().std()) < 0.5 * head.in_features**-0.5:
            nn.init.normal_(head.weight, std=head.in_features**-0.5)
    if norms:
        module.train()
        rates = {m: m.p for m in module.modules() if hasattr(m, "p") and isinstance(m.p, float)}
        for dropout in rates:
            dropout.p = 0.0
        with torch.no_grad():
            module(batch)
        for dropout, rate in rates.items():
            dropout.p = rate
    return module.eval()


def classifier(create: Callable[[], nn.Module]) -> Callable[[], Built]:
    """Build an image classifier from its constructor."""

    def build() -> Built:
        torch.manual_seed(0)
        module = settle(create(), torch.randn(4, *SIZE))
        images = [torch.randn(1, *SIZE) for _ in range(3)]
        return Built(module, (images[0],), [(image,) for image in images[1:]])

    return build


def torchvision_model(name: str) -> Callable[[], Built]:
    """Build ``torchvision.models.<name>`` with seeded weights."""
    return classifier(lambda: getattr(model_code().models, name)(weights=None))


def timm_model(name: str) -> Callable[[], Built]:
    """Build a timm model with seeded weights."""

    def create() -> nn.Module:
        model_code()
        import timm

        module: nn.Module = timm.create_model(name, pretrained=False)
        return module

    return classifier(create)


class UNet(nn.Module):
    """Two levels down, two up, with skip connections; bilinear and nearest upsampling."""

    def __init__(self, channels: int = 16, classes: int = 5) -> None:
        super().__init__()

        def block(n_in: int, n_out: int) -> nn.Sequential:
            return nn.Sequential(
                nn.Conv2d(n_in, n_out, 3, padding=1, bias=False),
                nn.BatchNorm2d(n_out),
                nn.ReLU(),
            )

        self.enter = block(3, channels)
        self.down = block(channels, 2 * channels)
        self.bottom = block(2 * channels, 4 * channels)
        self.rise = block(6 * channels, 2 * channels)
        self.leave = block(3 * channels, channels)
        self.head = nn.Conv2d(channels, classes, 1)
        self.pool = nn.MaxPool2d(2)
        self.bilinear = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.nearest = nn.Upsample(scale_factor=2, mode="nearest")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.enter(x)
        second = self.down(self.pool(first))
        third = self.bottom(self.pool(second))
        second = self.rise(torch.cat([self.bilinear(third), second], 1))
        first = self.leave(torch.cat([self.nearest(second), first], 1))
        logits: torch.Tensor = self.head(first)
        return logits


def unet() -> Built:
    """Build the small U-Net for 3×64×96 images."""
    torch.manual_seed(0)
    module = settle(UNet(), torch.randn(4, 3, 64, 96))
    images = [torch.randn(1, 3, 64, 96) for _ in range(3)]
    return Built(module, (images[0],), [(image,) for image in images[1:]])
