# SPDX-License-Identifier: BSD-3-Clause
"""Something true of this package, run where only what it declares is installed."""

from __future__ import annotations

import torch
from etx_quant import compare, quantize

model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
torch.manual_seed(0)
images = [(torch.rand(2, 3, 8, 8),) for _ in range(4)]
assert compare(model, quantize(model, images), images).sqnr > 20
