# SPDX-License-Identifier: BSD-3-Clause
"""Shape and dtype of what the operators of `integer_ops` return; sizes may be symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def linear(
    input: Tensor, weight: Tensor, sums: Tensor, bias: Any, scale: Tensor, *_: Any
) -> Tensor:
    """Return rows of as many int8 numbers as there are scales."""
    return input.new_empty((*input.shape[:-1], scale.shape[0]))


def dynamic_linear(input: Tensor, weight: Tensor, sums: Tensor, scales: Tensor, *_: Any) -> Tensor:
    """Return rows of float32, a number for each channel, the last dimension of `scales`."""
    return input.new_empty((*input.shape[:-1], scales.shape[-1]))


def weight_only_linear(input: Tensor, weight: Tensor, scales: Tensor, *_: Any) -> Tensor:
    """Return rows of float32, a number for each channel, the last dimension of `scales`."""
    return input.new_empty((*input.shape[:-1], scales.shape[-1]))


def linear_int4(input: Tensor, *operands: Any) -> Tensor:
    """Return rows of float32: before the two limits is how many numbers they have."""
    return input.new_empty((*input.shape[:-1], operands[-3]))


def _windows(
    image: Tensor,
    channels: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    spacing: Sequence[int] = (1, 1),
) -> Tensor:
    """Return an image (N, H, W, channels) with a pixel for each window over `image`."""
    sizes = []
    for i, size in enumerate(image.shape[1:3]):
        spread = (size - 1) * spacing[i] + 1 + padding[i] + padding[i + 2]
        sizes.append((spread - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1)
    return image.new_empty((image.shape[0], *sizes, channels))


def conv(
    input: Tensor,
    weight: Tensor,
    sums: Tensor,
    bias: Any,
    scale: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    spacing: Sequence[int],
    *_: Any,
) -> Tensor:
    """Return an image with as many channels as there are scales."""
    window = (kernel_size, stride, padding, dilation, spacing)
    return _windows(input, scale.shape[0], *window)


def dynamic_conv(
    input: Tensor,
    input_scale: Tensor,
    input_zero_point: Tensor,
    weight: Tensor,
    sums: Tensor,
    scales: Tensor,
    bias: Any,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    spacing: Sequence[int],
    *_: Any,
) -> Tensor:
    """Return an image of float32 with as many channels as there are scales."""
    window = (kernel_size, stride, padding, dilation, spacing)
    return _windows(input, scales.shape[0], *window).float()


def depthwise_conv(
    input: Tensor,
    weight: Tensor,
    sums: Tensor,
    bias: Any,
    scale: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    *_: Any,
) -> Tensor:
    """Return an image with as many channels as there are scales."""
    return _windows(input, scale.shape[0], kernel_size, stride, padding, dilation)


def pool(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    *_: Any,
) -> Tensor:
    """Return an image with the channels of `input`."""
    return _windows(input, input.shape[3], kernel_size, stride, padding, (1, 1))


def max_pool(
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Return an image with the channels of `input`."""
    return _windows(input, input.shape[3], kernel_size, stride, padding, dilation)


def elementwise(a: Tensor, b: Tensor, *_: Any) -> Tensor:
    """Return what `a` and `b` broadcast to."""
    return a + b


def mean(input: Tensor, dim: Sequence[int], keepdim: bool, *_: Any) -> Tensor:
    """Return `input` without the dimensions `dim`, or with sizes of one."""
    return input.sum(list(dim), keepdim, dtype=torch.int8)


def lookup(input: Tensor, table: Tensor) -> Tensor:
    """Return as many numbers as `input` has, of the dtype of `table`."""
    return torch.empty_like(input, dtype=table.dtype)


def interpolate(input: Tensor, rows: Tensor, columns: Tensor, *_: Any) -> Tensor:
    """Return an image (N, rows, columns, C)."""
    sizes = (input.shape[0], rows.shape[0], columns.shape[0], input.shape[3])
    return input.new_empty(sizes)
