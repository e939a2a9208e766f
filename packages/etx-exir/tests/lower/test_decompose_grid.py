# SPDX-License-Identifier: BSD-3-Clause
"""Samples of volumes are eager's, bit for bit, beyond borders and at numbers that are none."""

import math

import pytest
import torch
from etx_exir.lower.decompose_sampling import GRID

(OP,) = GRID
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
ODD = ((math.nan, 0, 0), (math.inf, 0, 0), (0.1, -math.inf, 0), (6e4, -6e4, 1))
CORNERS = ((1, 1, 1), (-1, -1, -1), (1, -1, 1), (0, 0, 0))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2], ids=["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", [0, 1], ids=["bilinear", "nearest"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples(dtype, mode, padding, align_corners):
    for sizes in ((3, 4, 5), (1, 1, 1), (1, 2, 7)):
        x = torch.randn(2, 3, *sizes).to(dtype)
        grid = (torch.randn(2, 4, 3, 2, 3) * 1.5).to(dtype)
        grid[0, 0, :2] = torch.tensor(CORNERS, dtype=dtype).view(2, 2, 3)
        if dtype != torch.bfloat16:  # eager's conversion to integers depends on the processor
            grid[1, 0, :2] = torch.tensor(ODD, dtype=dtype).view(2, 2, 3)
        given = (x, grid, mode, padding, align_corners)
        torch.testing.assert_close(GRID[OP](*given), OP(*given), rtol=0, atol=0)


def test_no_batches():
    given = (torch.empty(0, 3, 2, 2, 2), torch.empty(0, 1, 2, 3, 3), 0, 0, False)
    assert GRID[OP](*given).shape == (0, 3, 1, 2, 3)
