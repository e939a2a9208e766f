# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of Hurwitz's zeta function and of the polygamma functions, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from etx_exir.lower.decompose_special import BERNOULLI, SPECIAL

aten = torch.ops.aten

TERMS = 10
EULER = tuple(b / math.factorial(2 * k) for k, b in enumerate(BERNOULLI, 1))
LARGEST_FACTOR = 1e4
LARGEST_FACTORIAL = 170


def _of_positive(x: Tensor, q: Tensor) -> Any:
    """Return the sum of (q + k)^-x for q > 0: ten terms, and Euler and Maclaurin's formula of the
    others ("Handbook of Mathematical Functions", 23.1.30)."""
    places = torch.arange(TERMS, dtype=torch.float64, device=q.device)
    terms = torch.pow(q.unsqueeze(-1) + places, -x.unsqueeze(-1)).sum(-1)
    last = q + float(TERMS)
    power, factor = torch.pow(last, -x), x.clamp(max=LARGEST_FACTOR)
    square, series = last * last, torch.full_like(factor, EULER[-1])
    for k in range(len(EULER) - 1, 0, -1):
        step = (factor + (2.0 * k - 1.0)) * (factor + 2.0 * k)
        series = series * (step / square) + EULER[k - 1]
    rest = power * (series * (factor / last) + 0.5)
    return terms + torch.pow(last, 1.0 - x) / (x - 1.0) + rest


def _zeta_of(x: Tensor, q: Tensor) -> Any:
    """Below 0 the first terms are those of q's mirror image; there only integer powers are real."""
    x, q = aten.broadcast_tensors.default([x, q])
    floor = q.floor()
    mirrored = q <= 0.0
    above = torch.where(mirrored, q - floor, q)
    start, beside, end = _of_positive(x, torch.stack([above, (floor + 1.0) - q, 1.0 - q])).unbind()
    sign = 1.0 - 2.0 * x.remainder(2.0)
    result = torch.where(mirrored, start + sign * (beside - end), start)
    result = result.masked_fill(mirrored.logical_and(x != x.floor()), math.nan)
    result = result.masked_fill(mirrored.logical_and(q == floor), math.inf)
    result = result.masked_fill(x < 1.0, math.nan)
    return result.masked_fill(x == 1.0, math.inf)


def _zeta(self: Any, other: Any) -> Any:
    """Return zeta; each argument is a tensor or a number."""
    dtype = torch.result_type(self, other)
    dtype = dtype if dtype.is_floating_point else torch.float32
    device = (self if isinstance(self, Tensor) else other).device

    def wide(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value.to(torch.float64)
        return torch.full((), value, dtype=torch.float64, device=device)

    return _zeta_of(wide(self), wide(other)).to(dtype)


def _polygamma(n: int, self: Tensor) -> Any:
    """Return (-1)^(n + 1) n! zeta(n + 1, self) (A&S 6.4.10)."""
    if n == 0:
        return SPECIAL[aten.digamma.default](self)
    given = self if self.is_floating_point() else self.to(torch.float32)
    power = torch.full((), n + 1.0, dtype=torch.float64, device=self.device)
    size = float(math.factorial(n)) if n <= LARGEST_FACTORIAL else math.inf
    return (_zeta_of(power, given.to(torch.float64)) * (size if n % 2 else -size)).to(given.dtype)


ZETA: dict[OpOverload, Callable[..., Any]] = {
    aten.special_zeta.default: _zeta,
    aten.special_zeta.self_scalar: _zeta,
    aten.special_zeta.other_scalar: _zeta,
    aten.polygamma.default: _polygamma,
}
