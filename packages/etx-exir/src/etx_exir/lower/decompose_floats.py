# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of what looks at the parts of a floating-point number: sign, exponent, digits.

The sign of NaN, which arithmetic does not see, is taken to be +.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from etx_exir.lower.in_float32 import NARROW, in_float32

aten = torch.ops.aten

NO_EXPONENT = -(1 << 20)


def _signbit(self: Tensor) -> Any:
    if self.dtype == torch.bool:
        return aten.lt.Scalar(self.to(torch.uint8), 0)
    below = aten.lt.Scalar(self, 0)
    if not self.is_floating_point():
        return below
    zero = aten.lt.Scalar(aten.reciprocal.default(self), 0)
    return aten.logical_or.default(below, zero)


def _copysign(self: Tensor, other: Any) -> Any:
    dtype = torch.result_type(self, other)
    given = self.to(dtype if dtype.is_floating_point else torch.float32)
    size = aten.abs.default(given)
    if not isinstance(other, Tensor):
        return aten.neg.default(size) if math.copysign(1.0, other) < 0 else size
    return aten.where.self(_signbit(other), aten.neg.default(size), size)


def _scaled(x: Tensor, exponent: Tensor) -> Any:
    """Return x 2^exponent, in two steps where 2^exponent has no number."""
    half = aten.div.Tensor_mode(exponent, 2, rounding_mode="floor")
    first = aten.mul.Tensor(x, aten.pow.Scalar(2.0, half))
    return aten.mul.Tensor(first, aten.pow.Scalar(2.0, aten.sub.Tensor(exponent, half)))


def _parts(x: Tensor) -> tuple[Any, Any]:
    """Return m and e of x = m 2^e, 1/2 <= |m| < 1, of float64 as float64; of 0 they are 0."""
    size = aten.abs.default(x)
    usual = aten.logical_and.default(aten.gt.Scalar(size, 0.0), aten.lt.Scalar(size, math.inf))
    safe = aten.where.self(usual, x, aten.full_like.default(x, 0.5))
    exponent = aten.floor.default(aten.log2.default(aten.abs.default(safe)))
    exponent = aten.add.Scalar(exponent, 1.0)
    found = aten.abs.default(_scaled(safe, aten.neg.default(exponent)))
    exponent = aten.add.Tensor(exponent, aten.ge.Scalar(found, 1.0))
    exponent = aten.sub.Tensor(exponent, aten.lt.Scalar(found, 0.5).to(torch.float64))
    mantissa = _scaled(safe, aten.neg.default(exponent))
    none = aten.logical_not.default(usual)
    return aten.where.self(usual, mantissa, x), aten.masked_fill.Scalar(exponent, none, 0.0)


def _frexp(self: Tensor) -> Any:
    mantissa, exponent = _parts(self.to(torch.float64))
    return mantissa.to(self.dtype), exponent.to(torch.int32)


def _nextafter(self: Tensor, other: Tensor) -> Any:
    info = torch.finfo(self.dtype)
    digits, least = -round(math.log2(info.eps)) + 1, round(math.log2(info.tiny * info.eps))
    x, y = aten.broadcast_tensors.default([self.to(torch.float64), other.to(torch.float64)])
    mantissa, exponent = _parts(x)
    up = aten.gt.Tensor(y, x)
    inwards = aten.ne.Tensor(up, aten.gt.Scalar(x, 0.0))
    edge = aten.logical_and.default(inwards, aten.eq.Scalar(aten.abs.default(mantissa), 0.5))
    exponent = aten.sub.Tensor(exponent, edge.to(torch.float64))
    exponent = aten.masked_fill.Scalar(exponent, aten.eq.Scalar(x, 0.0), NO_EXPONENT)
    place = aten.clamp.default(aten.sub.Scalar(exponent, float(digits)), float(least))
    step = _scaled(aten.full_like.default(x, 1.0), place)
    result = aten.add.Tensor(x, aten.where.self(up, step, aten.neg.default(step)))
    finite = aten.clamp.default(x, -info.max, info.max)
    result = aten.where.self(aten.isinf.default(x), finite, result)
    missing = aten.logical_or.default(aten.isnan.default(x), aten.isnan.default(y))
    result = aten.masked_fill.Scalar(result, missing, math.nan)
    return aten.where.self(aten.eq.Tensor(x, y), y, result).to(self.dtype)


def _ldexp(self: Tensor, other: Tensor) -> Any:
    dtype = torch.result_type(self, other)
    if dtype.is_complex:
        return aten.mul.Tensor(self, aten.pow.Scalar(2.0, other))
    dtype = dtype if dtype.is_floating_point else torch.float32
    wide = torch.float32 if dtype in NARROW else dtype
    power = aten.pow.Scalar(2.0, other if other.is_floating_point() else other.to(wide))
    return aten.mul.Tensor(self.to(wide), power.to(wide)).to(dtype)


def _round_decimals(self: Tensor, *, decimals: int) -> Any:
    if decimals == 0:
        return aten.round.default(self)
    power = float(10 ** abs(decimals))
    steps = (aten.mul.Scalar, aten.div.Scalar)
    into, back = steps if decimals > 0 else steps[::-1]
    return back(aten.round.default(into(self, power)), power)


FLOATS: dict[OpOverload, Callable[..., Any]] = {
    aten.signbit.default: _signbit,
    aten.copysign.Tensor: _copysign,
    aten.copysign.Scalar: _copysign,
    aten.frexp.Tensor: _frexp,
    aten.nextafter.default: _nextafter,
    aten.ldexp.Tensor: _ldexp,
    aten.round.decimals: in_float32(_round_decimals),
}
