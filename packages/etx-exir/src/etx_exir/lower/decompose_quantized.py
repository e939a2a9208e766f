# SPDX-License-Identifier: BSD-3-Clause
"""Quantized operators of torch that no target has a kernel for, by those that have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["quantized"]

NAMESPACE = torch.ops.quantized_decomposed


def quantized() -> dict[OpOverload, Callable[..., Any]]:
    """Return the decompositions of the operators that are registered by now.

    torch registers its quantized operators when something asks for them: a program that holds one
    has done so, for any other they would only take time.
    """
    if not hasattr(NAMESPACE, "dequantize_per_channel_group"):
        return {}
    return {NAMESPACE.dequantize_per_channel_group.default: _dequantize_per_channel_group}


def _dequantize_per_channel_group(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    group_size: int,
    output_dtype: torch.dtype,
) -> Any:
    """Take each group as a channel: dequantize_per_channel of the rows of [groups, group_size]."""
    groups = NAMESPACE.dequantize_per_channel.default(
        input.reshape(-1, group_size),
        scales.reshape(-1),
        None if zero_points is None else zero_points.reshape(-1),
        0,
        quant_min,
        quant_max,
        dtype,
        out_dtype=output_dtype,
    )
    return groups.reshape(input.shape)
