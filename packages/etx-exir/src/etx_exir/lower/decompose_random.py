# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of random numbers to `rand` and `randn`.

They are distributed as eager's, but in a sequence of their own: docs/random.md says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["RANDOM"]

aten = torch.ops.aten

SMALLEST = 2.0**-60


def _rand_like(self: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return aten.rand.default(self.shape, dtype=dtype or self.dtype)


def _randn_like(self: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return aten.randn.default(self.shape, dtype=dtype or self.dtype)


def _randperm(n: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    order = aten.topk.default(aten.rand.default([n], dtype=torch.float64), n)[1]
    return order.to(dtype or torch.int64)


def _randint_low(
    low: Any, high: Any, size: Any, *, dtype: torch.dtype | None = None, **_: Any
) -> Any:
    """Scale numbers of float64, of which a range may have 2^53."""
    places = aten.rand.default(size, dtype=torch.float64) * (high - low)
    return (places.to(torch.int64) + low).to(dtype or torch.int64)


def _randint(high: Any, size: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return _randint_low(0, high, size, dtype=dtype)


def _randint_like(self: Tensor, high: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return _randint_low(0, high, self.shape, dtype=dtype or self.dtype)


def _randint_like_low(
    self: Tensor, low: Any, high: Any, *, dtype: torch.dtype | None = None, **_: Any
) -> Any:
    return _randint_low(low, high, self.shape, dtype=dtype or self.dtype)


def _below(size: Any, p: Any, dtype: torch.dtype) -> Any:
    """Return 1 with probability `p`: where a number of float32, or of the dtype of `p`, is less."""
    drawn = p.dtype if isinstance(p, Tensor) and p.dtype == torch.float64 else torch.float32
    return torch.lt(aten.rand.default(size, dtype=drawn), p).to(dtype)


def _bernoulli(self: Tensor, *, generator: Any = None) -> Any:
    return _below(self.shape, self, self.dtype)


def _bernoulli_of(self: Tensor, p: Any, *, generator: Any = None) -> Any:
    return _below(self.shape, p, self.dtype)


def _uniform(self: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
    return aten.rand.default(self.shape, dtype=self.dtype) * (high - low) + low


def _normal(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    return aten.randn.default(self.shape, dtype=self.dtype) * std + mean


def _normal_of(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Any:
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    broadcast: Callable[..., Any] = torch.broadcast_shapes
    size = broadcast(*(tensor.shape for tensor in tensors))
    dtype = torch.result_type(tensors[0], tensors[-1])
    return aten.randn.default(size, dtype=dtype) * std + mean


def _normal_sized(
    mean: float, std: float, size: Any, *, dtype: torch.dtype | None = None, **_: Any
) -> Any:
    return aten.randn.default(size, dtype=dtype or torch.get_default_dtype()) * std + mean


def _waits(size: Any, dtype: torch.dtype = torch.float64) -> Any:
    """Return numbers of the exponential distribution of mean 1: -log(1 - u)."""
    return -aten.log.default(aten.rsub.Scalar(aten.rand.default(size, dtype=dtype), 1.0))


def _exponential(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Any:
    return (_waits(self.shape) / lambd).to(self.dtype)


def _geometric(self: Tensor, p: float, *, generator: Any = None) -> Any:
    """Count trials up to the first success: as many as whole steps of a wait."""
    if p == 1:
        return torch.ones_like(self)
    return (aten.floor.default(_waits(self.shape) / -math.log1p(-p)) + 1).to(self.dtype)


def _log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    return aten.exp.default(_normal(self, mean, std))


def _cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    places = aten.rand.default(self.shape, dtype=torch.float64) - 0.5
    return (aten.tan.default(places * math.pi) * sigma + median).to(self.dtype)


def _multinomial(
    self: Tensor, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Without replacement the largest weights over waits, as of the first to come (Efraimidis and
    Spirakis, "Weighted random sampling with a reservoir", 2006); with, places of the cumulated."""
    weights = self.to(torch.float64)
    if not replacement:
        waits = aten.clamp.default(_waits(self.shape), SMALLEST)
        return aten.topk.default(weights / waits, num_samples, -1)[1]
    ends = aten.cumsum.default(weights, -1)
    drawn = aten.rand.default([*self.shape[:-1], num_samples], dtype=torch.float64)
    drawn = drawn * ends.narrow(-1, self.shape[-1] - 1, 1)
    passed = aten.le.Tensor(ends.unsqueeze(-2), drawn.unsqueeze(-1)).sum(-1)
    return aten.clamp.default(passed, None, self.shape[-1] - 1)


def _rrelu(
    self: Tensor,
    noise: Tensor,
    lower: Any = 0.125,
    upper: Any = 1.0 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    if not training:
        slope = (lower + upper) / 2
        return torch.where(self <= 0, self * slope, self), noise.clone()
    slopes = torch.where(self <= 0, _uniform(self, lower, upper), 1.0)
    return self * slopes, slopes


RANDOM: dict[OpOverload, Callable[..., Any]] = {
    aten.rand_like.default: _rand_like,
    aten.randn_like.default: _randn_like,
    aten.randperm.default: _randperm,
    aten.randint.default: _randint,
    aten.randint.low: _randint_low,
    aten.randint_like.default: _randint_like,
    aten.randint_like.low_dtype: _randint_like_low,
    aten.bernoulli.default: _bernoulli,
    aten.bernoulli.p: _bernoulli_of,
    aten.bernoulli.Tensor: _bernoulli_of,
    aten.uniform.default: _uniform,
    aten.normal_functional.default: _normal,
    aten.normal.Tensor_float: _normal_of,
    aten.normal.float_Tensor: _normal_of,
    aten.normal.Tensor_Tensor: _normal_of,
    aten.normal.float_float: _normal_sized,
    aten.exponential.default: _exponential,
    aten.geometric.default: _geometric,
    aten.log_normal.default: _log_normal,
    aten.cauchy.default: _cauchy,
    aten.multinomial.default: _multinomial,
    aten.rrelu_with_noise_functional.default: _rrelu,
}
