# SPDX-License-Identifier: BSD-3-Clause
"""Images of bytes are resized to the nearest byte, within a step of eager's."""

from __future__ import annotations

import pytest
import torch
from etx_exir import to_edge
from promise import executed, loaded
from torch import nn

SIZES = [(3, 3), (9, 7), (8, 8), (2, 5), (4, 4), (1, 11)]
FORMATS = [torch.contiguous_format, torch.channels_last]


class Resized(nn.Module):
    def __init__(self, size, align_corners):
        super().__init__()
        self.size, self.options = size, {"mode": "bilinear", "align_corners": align_corners}

    def forward(self, x):
        return nn.functional.interpolate(x, self.size, **self.options)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
def test_images_of_bytes_are_resized(size, align_corners, memory_format):
    model = Resized(size, align_corners)
    x = torch.randint(0, 256, (2, 3, 4, 4), dtype=torch.uint8)
    x = x.contiguous(memory_format=memory_format)
    file = to_edge(torch.export.export(model, (x,))).to_executorch()
    (result,) = executed(loaded(file.buffer), (x,))
    expected = model(x)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert (result.int() - expected.int()).abs().max() <= 1
    assert (result.double() - model(x.double())).abs().max() <= 0.5 + 1e-4
