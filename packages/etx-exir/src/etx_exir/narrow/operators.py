# SPDX-License-Identifier: BSD-3-Clause
"""``etx::narrow_linear`` and ``etx::narrow_conv``: layers of float32 with weights in bfloat16.

A device may round the input to bfloat16 before it is multiplied, as is done here: it does where the
processor multiplies such numbers faster. Sums and results are float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from etx_exir.ir.own_ops import define

__all__ = ["NARROW_CONV", "NARROW_LINEAR"]


def _rounded(input: Tensor) -> Tensor:
    return input.bfloat16().float()


def _narrow_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return functional.linear(_rounded(input), weight.float(), bias)


def _narrow_conv(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Convolve with a weight (O, I, ...) whose I lies innermost in memory."""
    window = (list(stride), list(padding), list(dilation))
    result: Tensor = torch.ops.aten.convolution(
        _rounded(input), weight.float().contiguous(), bias, *window, False, [0], groups
    )
    return result.contiguous()


def _linear_shape(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return input.new_empty((*input.shape[:-1], weight.shape[0]))


def _conv_shape(input: Tensor, weight: Tensor, bias: Tensor | None, *window: Any) -> Tensor:
    stride, padding, dilation, _ = window
    sizes = []
    for i, size in enumerate(input.shape[2:]):
        reach = dilation[i % len(dilation)] * (weight.shape[i + 2] - 1) + 1
        room = size + 2 * padding[i % len(padding)] - reach
        sizes.append(room // stride[i % len(stride)] + 1)
    return input.new_empty((input.shape[0], weight.shape[0], *sizes))


NARROW_LINEAR = define(
    "narrow_linear(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
    _narrow_linear,
    _linear_shape,
)
NARROW_CONV = define(
    "narrow_conv(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding,"
    " SymInt[] dilation, SymInt groups) -> Tensor",
    _narrow_conv,
    _conv_shape,
)
