# SPDX-License-Identifier: BSD-3-Clause
"""Images of bytes are resized to the bits that eager gives."""

import pytest
import torch
from etx_exir.lower.decompose_sampling import BYTES
from on_device import agree

aten = torch.ops.aten
OPERATOR = aten.upsample_bicubic2d
SHAPES = (1, 3, 4, 4), (2, 1, 5, 7), (1, 5, 9, 2), (1, 3, 33, 20)
SIZES = [3, 3], [4, 7], [11, 14], [13, 3], [9, 2]  # PyTorch's are wrong, or fail, of width 1
SCALES = [2.0, 2.0], [1.7, 1.4], [0.5, 3.0]


@pytest.mark.parametrize("corners", [False, True])
def test_equals_eager(corners):
    generator = torch.Generator().manual_seed(0)
    for shape in SHAPES:
        x = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        for size, scales in [(s, None) for s in SIZES] + [(None, s) for s in SCALES]:
            found = BYTES[OPERATOR.vec](x, size, corners, scales)
            assert torch.equal(found, OPERATOR.vec(x, size, corners, scales)), (shape, size, scales)
            if size is not None:
                found = BYTES[OPERATOR.default](x, size, corners)
                assert torch.equal(found, OPERATOR.default(x, size, corners)), (shape, size)


def test_runs():
    x = torch.randint(0, 256, (2, 3, 6, 5), dtype=torch.uint8)

    def resized(x):
        resize = torch.nn.functional.interpolate
        return [resize(x, (9, 4), mode="bicubic", align_corners=on) for on in (False, True)]

    agree(resized, (x,))
