# SPDX-License-Identifier: BSD-3-Clause
"""Upsampling against eager: the `vec` overloads never reach a dispatch mode."""

from __future__ import annotations

import pytest
import torch
from harness import PLUGIN, KernelError, Out

CONTIGUOUS, CHANNELS_LAST = [0, 1, 2, 3], [0, 2, 3, 1]
SIZES = [(1, 1), (4, 7), (10, 14), (13, 3), (5, 21)]
SCALES = [(2.0, 2.0), (1.7, 0.9), (0.5, 3.0)]
TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-10, torch.float16: 2e-2}
SHAPES = [(2, 3, 5, 7), (1, 1, 1, 1), (1, 4, 1, 9), (0, 3, 4, 4), (2, 33, 40, 50)]


def image(shape: tuple[int, ...], dtype: torch.dtype, order: list[int]) -> torch.Tensor:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)) * 4
    x = x.abs().to(dtype) if dtype == torch.uint8 else x.to(dtype)
    return x.to(memory_format=torch.channels_last) if order == CHANNELS_LAST else x


def nearest(x: torch.Tensor, size: object, scales: object) -> torch.Tensor:
    return torch.ops.aten.upsample_nearest2d.vec(x, size, scales)


def bilinear(x: torch.Tensor, size: object, corners: bool, scales: object) -> torch.Tensor:
    return torch.ops.aten.upsample_bilinear2d.vec(x, size, corners, scales)


@pytest.mark.parametrize("order", [CONTIGUOUS, CHANNELS_LAST], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nearest(shape: tuple[int, ...], order: list[int]) -> None:
    for dtype in (torch.float32, torch.uint8, torch.float64, torch.float16):
        x = image(shape, dtype, order)
        for size, scales in [(s, None) for s in SIZES] + [(None, s) for s in SCALES]:
            if scales and 0 in [int(n * s) for n, s in zip(shape[2:], scales, strict=True)]:
                continue
            want = nearest(x, size, scales)
            for out in (order, CONTIGUOUS):
                got = PLUGIN.call(
                    "aten::upsample_nearest2d.vec_out", x, size, scales, Out(want.shape, dtype, out)
                )
                assert torch.equal(got[0], want), (size, scales)


@pytest.mark.parametrize("order", [CONTIGUOUS, CHANNELS_LAST], ids=["nchw", "nhwc"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bilinear(shape: tuple[int, ...], corners: bool, order: list[int]) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = image(shape, dtype, order)
        for size, scales in [(s, None) for s in SIZES] + [(None, s) for s in SCALES]:
            if scales and 0 in [int(n * s) for n, s in zip(shape[2:], scales, strict=True)]:
                continue
            want = bilinear(x, size, corners, scales)
            tol = TOLERANCES[dtype]
            for out in (order, CONTIGUOUS):
                (got,) = PLUGIN.call(
                    "aten::upsample_bilinear2d.vec_out",
                    *(x, size, corners, scales, Out(want.shape, dtype, out)),
                )
                torch.testing.assert_close(got, want, rtol=tol, atol=tol)


@pytest.mark.parametrize("scale", [None, 1.3])
def test_antialiased_leaves_a_dimension_of_the_same_size(scale: float | None) -> None:
    x = image((1, 2, 3, 4), torch.float32, CONTIGUOUS)
    x[0, 0, 1, 1] = torch.inf
    for size in ([3, 4], [6, 4], [3, 9]):
        args = (x, size, False, scale if size[0] == 3 else None, scale if size[1] == 4 else None)
        want = torch.ops.aten._upsample_bilinear2d_aa(*args)
        name = "aten::_upsample_bilinear2d_aa.out"
        (got,) = PLUGIN.call(name, *args, Out([1, 2, *size], torch.float32))
        torch.testing.assert_close(got, want, equal_nan=True)


def test_refuses() -> None:
    x, out = torch.zeros(1, 1, 2, 2), Out([1, 1, 4, 4], torch.float32)
    for size, scales in [(None, None), ([4, 4], [2.0, 2.0]), ([0, 4], None), (None, [-1.0, 2.0])]:
        with pytest.raises(KernelError):
            PLUGIN.call("aten::upsample_nearest2d.vec_out", x, size, scales, out)
