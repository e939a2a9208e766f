# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

from digits import DigitsNet, digits, train
from etx_quant import quantize

torch.set_num_threads(1)  # models here are small: threads would wait for each other


@dataclass
class Trained:
    model: DigitsNet
    quantized: torch.fx.GraphModule
    images: torch.Tensor
    labels: torch.Tensor


@pytest.fixture(scope="session")
def trained() -> Trained:
    train_images, train_labels, images, labels = digits()
    model = train(train_images, train_labels)
    batch = torch.export.Dim("batch", min=1, max=512)
    calibration = [(b,) for b in train_images[:256].split(64)]
    quantized = quantize(model, calibration, dynamic_shapes=({0: batch},))
    return Trained(model, quantized, images, labels)
