# SPDX-License-Identifier: BSD-3-Clause
"""Factors as an int32 multiplier and a shift, and what the kernels compute with them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

LEFT_SHIFT = 20
"""Operands of a sum are multiplied by 2^20 before they get a common scale."""


def factor(scale: float) -> tuple[int, int]:
    """Return (multiplier, shift): `scale` is about multiplier / 2^31 * 2^shift."""
    if scale == 0:
        return 0, 0
    fraction, shift = math.frexp(scale)
    multiplier = round(fraction * 2**31)
    if abs(multiplier) == 2**31:
        multiplier, shift = multiplier // 2, shift + 1
    return (0, 0) if shift < -31 else (multiplier, min(shift, 30))


def requantize(value: Tensor, multiplier: Tensor, shift: Tensor) -> Tensor:
    """Multiply int64 `value`, of int32, by a factor as `native/cortex_m/fixed_point.h` does."""
    left, right = shift.clamp(min=0), (-shift).clamp(min=0)
    high = ((value << left) * multiplier + 2**30) >> 31
    mask = (torch.ones_like(right) << right) - 1
    rest = high & mask
    half = (mask >> 1) + (high < 0).long()
    return torch.where(right == 0, high, (high >> right) + (rest > half).long())


def finish(
    value: Tensor, factors: tuple[object, object], offset: int, bounds: tuple[int, int]
) -> Tensor:
    """Multiply by a factor, or one for each of the last dimension; give int8 within `bounds`."""
    multiplier, shift = (torch.as_tensor(part, device=value.device).long() for part in factors)
    result = requantize(value.long(), multiplier, shift) + offset
    return result.clamp(*bounds).to(torch.int8)
