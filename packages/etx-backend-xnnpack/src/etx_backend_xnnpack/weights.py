# SPDX-License-Identifier: BSD-3-Clause
"""Weights and biases as XNNPACK's kernels take them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from etx_backend_xnnpack._generated.xnnpack import DataType, PerChannel, PerGroup, PerTensor
from etx_backend_xnnpack.builder import NONE, Affine, Builder
from etx_backend_xnnpack.quantized import Weight

INT4_ZERO = 8


def float_weight(builder: Builder, tensor: Tensor) -> int:
    """Store a weight in the builder's dtype."""
    return builder.constant(tensor, packed=True)


def float32_weight(builder: Builder, tensor: Tensor) -> int:
    """Store a float32 weight, as XNNPACK's convolutions of float16 take it."""
    return builder.constant(tensor.to(torch.float32), DataType.FP32, packed=True)


def int8_weight(builder: Builder, weight: Weight, integers: Tensor) -> int:
    """Store int8 with a scale of its own for each output channel or one for all.

    `integers` are those of `weight`, arranged; output channels lie in dimension `weight.axis`.
    """
    if weight.scales.dim() == 0:
        one = PerTensor(scale=float(weight.scales), zero_point=0)
        return builder.constant(integers, DataType.QINT8, quantization=one, packed=True)
    return builder.constant(
        integers,
        DataType.QCINT8,
        quantization=_channels(builder, weight.scales, weight.axis),
        packed=True,
    )


def int4_weight(builder: Builder, weight: Weight) -> int:
    """Store (outputs, inputs) of int4: two to a byte, the even one in the low bits, plus eight."""
    rows = weight.integers.to(torch.int16)
    if rows.shape[1] % 2:
        rows = torch.nn.functional.pad(rows, (0, 1))
    rows = rows + INT4_ZERO
    packed = (rows[:, 0::2] | (rows[:, 1::2] << 4)).to(torch.uint8)
    sizes = list(weight.integers.shape)
    if weight.scales.dim() == 1:
        channels = _channels(builder, weight.scales, 0)
        return builder.constant(packed, DataType.QCINT4, sizes, channels, True)
    scales = weight.scales.to(torch.bfloat16)
    groups = PerGroup(
        group_size=sizes[1] // scales.shape[1],
        scale_index=builder.scales(scales),
        num_scales=scales.numel(),
    )
    return builder.constant(packed, DataType.QBINT4, sizes, groups, True)


def int32_bias(builder: Builder, bias: Tensor | None, activation: Affine, weight: Weight) -> int:
    """Store a bias in steps of the activation's scale times the weight's; NONE without one."""
    if bias is None:
        return NONE
    scales = (weight.scales.to(torch.float64) * activation.scale).to(torch.float32)
    steps = torch.round(bias.to(torch.float64) / scales.to(torch.float64))
    limits = torch.iinfo(torch.int32)
    integers = steps.clamp(limits.min, limits.max).to(torch.int32)
    if scales.dim() == 0:
        one = PerTensor(scale=float(scales), zero_point=0)
        return builder.constant(integers, DataType.QINT32, quantization=one, packed=True)
    return builder.constant(
        integers, DataType.QCINT32, quantization=_channels(builder, scales, 0), packed=True
    )


def float_bias(builder: Builder, bias: Tensor | None) -> int:
    """Store a bias in the builder's dtype; NONE without one."""
    return NONE if bias is None else float_weight(builder, bias)


def _channels(builder: Builder, scales: Tensor, dim: int) -> PerChannel:
    place = builder.scales(scales.to(torch.float32))
    return PerChannel(channel_dim=dim, scale_index=place, num_scales=scales.numel())


def arranged(tensor: Tensor, axis: int, order: tuple[int, ...]) -> tuple[Any, int]:
    """Return a tensor with its dimensions in `order`, and where `axis` is then."""
    return tensor.permute(order).contiguous(), order.index(axis)
