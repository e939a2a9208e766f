# SPDX-License-Identifier: BSD-3-Clause
"""A head that suppresses boxes, aligns features with what stays and gives each a mask."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from .built import Built

PACKAGES = Path(__file__).parents[2] / "packages"
sys.path.append(str(PACKAGES / "etx-exir" / "tests"))
sys.path.append(str(PACKAGES / "etx-kernels-portable" / "tests" / "support"))
from detection import MaskHead, detections  # noqa: E402
from torchvision_stand_in import define_operators  # noqa: E402

OPERATORS = define_operators()


def mask_head() -> Built:
    """Build the head for 30 boxes; how many stay differs from call to call."""
    torch.manual_seed(0)
    return Built(MaskHead().eval(), detections(30), [detections(30) for _ in range(3)])
