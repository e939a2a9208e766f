# SPDX-License-Identifier: BSD-3-Clause
"""Calls of operators, and in forms, that none of the first of PyTorch's samples reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
A, B = torch.ones(2, 3), torch.full((2, 3), 2.0)
IMAGE, VOLUME = torch.ones(1, 2, 4, 4), torch.ones(1, 1, 4, 4, 4)
MASK = torch.tensor([[True, False, True], [False, True, True]])
CHANNELS = torch.ones(2)
WEIGHT = torch.ones(3, 2, 2, 2)
ROWS = torch.tensor([0, 1])

SCALAR = ("ne", "lt", "le", "ge", "add", "sub", "rsub", "mul", "div", "fmod", "remainder")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def pooled() -> Any:
    values, indices = aten.max_pool2d_with_indices.default(IMAGE, [2, 2])
    return aten.max_pool2d_with_indices_backward.default(
        values, IMAGE, [2, 2], [], [0, 0], [1, 1], False, indices
    )


def convolved() -> Any:
    grad = torch.ones(1, 3, 3, 3)
    masks = [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]
    return aten.convolution_backward.default(grad, IMAGE, WEIGHT, *masks)


def scalar(name: str) -> Callable[[], Any]:
    x = A.int() if name in BITS else A
    return lambda: getattr(aten, name).Scalar(x, 2)


EXTRA: tuple[Callable[[], Any], ...] = (
    *map(scalar, (*SCALAR, *BITS)),
    lambda: aten._conj_physical.default(torch.ones(2, dtype=torch.complex64)),
    lambda: aten._fft_c2c.default(torch.ones(4, 3, dtype=torch.complex64), [1], 0, True),
    lambda: aten._fft_c2r.default(torch.ones(4, 3, dtype=torch.complex64), [1], 0, 4),
    lambda: aten._fft_r2c.default(torch.ones(4, 4), [1], 0, True),
    lambda: aten._native_batch_norm_legit.default(
        IMAGE, CHANNELS, CHANNELS, CHANNELS.clone(), CHANNELS.clone(), False, 0.1, 1e-5
    ),
    lambda: aten._native_batch_norm_legit.no_stats(IMAGE, CHANNELS, CHANNELS, True, 0.1, 1e-5),
    lambda: aten._native_batch_norm_legit_no_training.default(
        IMAGE, CHANNELS, CHANNELS, CHANNELS, CHANNELS, 0.1, 1e-5
    ),
    lambda: aten._to_copy.default(A, dtype=torch.float64),
    lambda: aten.arange.default(5, dtype=torch.float32),
    lambda: aten.bitwise_left_shift.Tensor_Scalar(A.int(), 1),
    lambda: aten.bitwise_right_shift.Tensor_Scalar(A.int(), 1),
    lambda: aten.convolution.default(
        IMAGE, WEIGHT, torch.ones(3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    ),
    lambda: aten.copy.default(A, B),
    lambda: aten.copy_.default(A.clone(), B),
    lambda: aten.detach_copy.default(A),
    lambda: aten.div.Scalar_mode(A, 2, rounding_mode="floor"),
    lambda: aten.fill.Tensor(A, torch.tensor(2.0)),
    lambda: aten.index.Tensor(A, [MASK]),
    lambda: aten.index_put.default(A, [MASK], torch.tensor([2.0])),
    lambda: aten.index_put_.default(A.clone(), [MASK], torch.tensor([2.0])),
    lambda: aten.index_put_.default(A.clone(), [ROWS], B),
    lambda: aten.native_dropout.default(A, 0.5, True),
    lambda: aten.native_group_norm.default(IMAGE, CHANNELS, CHANNELS, 1, 2, 16, 1, 1e-5),
    lambda: aten.native_layer_norm.default(A, [3], torch.ones(3), torch.ones(3), 1e-5),
    lambda: aten.pow.Scalar(2, A),
    lambda: aten.pow.Tensor_Scalar(A, 2),
    lambda: aten.rand.default([2]),
    lambda: aten.randn.default([2]),
    lambda: aten.reflection_pad2d.default(IMAGE, [1, 1, 1, 1]),
    lambda: aten.reflection_pad3d.default(VOLUME, [1, 1, 1, 1, 1, 1]),
    lambda: aten.replication_pad2d.default(IMAGE, [1, 1, 1, 1]),
    lambda: aten.replication_pad3d.default(VOLUME, [1, 1, 1, 1, 1, 1]),
    lambda: aten.scatter.value(A, 1, torch.tensor([[0], [1]]), 2.0),
    lambda: aten.sort.stable(A, stable=True, dim=0, descending=False),
    lambda: aten.view_as_real_copy.default(torch.ones(2, dtype=torch.complex64)),
    lambda: aten.view_as_complex_copy.default(torch.ones(3, 2)),
    convolved,
    pooled,
)

WHOLE: tuple[tuple[Any, ...], ...] = (  # an operator that torch takes apart, and its arguments
    (aten.clamp.default, A, 0.5, 1.0),
    (aten.hardsigmoid.default, A),
    (aten.linear.default, A, B, CHANNELS),
    (aten.silu.default, A),
    (aten.upsample_bilinear2d.vec, IMAGE, None, False, [2.0, 2.0]),
    (aten.upsample_nearest2d.vec, IMAGE, None, [2.0, 2.0]),
    (aten.var.dim, A, [0], True, False),
)
