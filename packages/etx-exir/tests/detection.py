# SPDX-License-Identifier: BSD-3-Clause
"""A head that turns detections into masks, as Mask R-CNN's does, and inputs for it."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

KERNELS = Path(__file__).parents[2] / "etx-kernels-portable" / "tests" / "support"
sys.path.append(str(KERNELS))
from torchvision_stand_in import torchvision_operators  # noqa: E402

__all__ = ["MaskHead", "boxes_and_scores", "torchvision_operators"]


class MaskHead(nn.Module):
    """Boxes are decoded from anchors, suppressed, aligned with the features, and get a mask each.

    ``forward(features (1, 8, H, W), deltas (N, 4), anchors (N, 4), scores (N,))``: the boxes that
    stay (K, 4), their scores (K,) and masks (K, classes, 28, 28); K is known at run time.
    """

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels in (8, 16):
            layers += [nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        self.up = nn.ConvTranspose2d(16, 16, 2, stride=2)
        self.logits = nn.Conv2d(16, classes, 1)

    def forward(
        self, features: Tensor, deltas: Tensor, anchors: Tensor, scores: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        boxes = self.decode(deltas, anchors)
        kept = torch.ops.torchvision.nms(boxes, scores, 0.4)
        boxes, scores = boxes[kept], scores[kept]
        rois = F.pad(boxes, (1, 0))
        aligned = torch.ops.torchvision.roi_align(features, rois, 0.25, 14, 14, 2, True)
        masks = self.logits(self.up(self.convolutions(aligned)).relu())
        return boxes, scores, masks.sigmoid()

    def decode(self, deltas: Tensor, anchors: Tensor) -> Tensor:
        size = anchors[:, 2:] - anchors[:, :2]
        middle = anchors[:, :2] + size / 2 + deltas[:, :2] * size
        half = torch.exp(deltas[:, 2:].clamp(max=4)) * size / 2
        return torch.cat([middle - half, middle + half], 1).clamp(0, 64)


def boxes_and_scores(count: int) -> tuple[Tensor, Tensor]:
    corners = torch.rand(count, 2) * 40
    return torch.cat([corners, corners + 4 + torch.rand(count, 2) * 20], 1), torch.rand(count)


def detections(count: int) -> tuple[Tensor, ...]:
    """Return inputs of `MaskHead` with that many boxes."""
    anchors, scores = boxes_and_scores(count)
    return torch.randn(1, 8, 16, 16), torch.randn(count, 4) / 8, anchors, scores
