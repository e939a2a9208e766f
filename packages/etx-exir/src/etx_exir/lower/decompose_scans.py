# SPDX-License-Identifier: BSD-3-Clause
"""Running results of a dimension, and reductions into places that an index names.

A running result of n elements takes log2(n) steps: each combines an element with the result that
ends 1, 2, 4... before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import statically_known_true

from etx_exir.errors import LoweringError
from etx_exir.lower.in_float32 import in_float32

__all__ = ["SCANS", "running_in_groups"]

aten = torch.ops.aten

WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
}
"""Where eager accumulates a product."""


def _steps(length: int) -> list[int]:
    if isinstance(length, torch.SymInt):
        raise LoweringError(
            f"the dimension it goes along has the dynamic size {length}, but takes as many steps"
            " as that size has bits; export it with a fixed size"
        )
    return [1 << bit for bit in range((length - 1).bit_length())] if length > 1 else []


def _before(x: Tensor, dim: int, step: int, fill: float) -> Tensor:
    """Return for each element the one `step` before it, and `fill` for the first ones."""
    kept = x.narrow(dim, 0, x.shape[dim] - step)
    pad = [0, 0] * (x.dim() - 1 - dim) + [step, 0]
    result: Tensor = aten.constant_pad_nd.default(kept, pad, fill)
    return result


def _along(values: Tensor, rank: int, dim: int) -> Tensor:
    """Return a vector as a tensor of that rank, along `dim`."""
    return values.view([-1 if i == dim else 1 for i in range(rank)])


def _least(dtype: torch.dtype) -> float:
    if dtype == torch.bool:
        return False
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _most(dtype: torch.dtype) -> float:
    if dtype == torch.bool:
        return True
    return math.inf if dtype.is_floating_point else torch.iinfo(dtype).max


def _cumprod(self: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    real = self.is_floating_point() or self.is_complex()
    dtype = dtype or (self.dtype if real else torch.int64)
    x = self.to(dtype).to(WIDER.get(dtype, dtype))
    if self.dim():
        dim %= self.dim()
        for step in _steps(self.shape[dim]):
            x = aten.mul.Tensor(x, _before(x, dim, step, 1))
    return x.clone() if x is self else x.to(dtype)


def _running(
    better: Callable[..., Any], worst: Callable[[torch.dtype], float]
) -> Callable[..., Any]:
    """Return a running maximum or minimum: the last of equal ones, and of NaN, counts."""

    def compute(self: Tensor, dim: int) -> Any:
        if not self.dim() or statically_known_true(self.shape[dim] <= 1):
            return self.clone(), torch.zeros_like(self, dtype=torch.int64)
        dim %= self.dim()
        values, fill = self, worst(self.dtype)
        for step in _steps(self.shape[dim]):
            values = better(values, _before(values, dim, step, fill))
        return values, _record(self, values, dim)

    return compute


def _record(x: Tensor, best: Tensor, dim: int) -> Tensor:
    """Return for each element the place of the last one up to it that was the best so far.

    The records are numbered in their order, and their places noted under these numbers.
    """
    length = x.shape[dim]
    new = aten.eq.Tensor(x, best)
    if x.is_floating_point():
        new = aten.logical_or.default(new, aten.isnan.default(x))
    number = aten.sub.Scalar(aten.cumsum.default(new.to(torch.int64), dim), 1)
    place = _along(torch.arange(length, device=x.device), x.dim(), dim).expand(x.shape)
    sizes = [size + 1 if i == dim else size for i, size in enumerate(x.shape)]
    unused = torch.full([], length, device=x.device)
    slot = aten.where.self(new, number, unused)
    places = aten.scatter.src(number.new_zeros(sizes), dim, slot, place)
    result: Tensor = aten.gather.default(places, dim, number)
    return result


def _logcumsumexp(self: Tensor, dim: int) -> Any:
    """Return it by log(e^a + e^b) = max(a, b) + log1p(e^-|a - b|)."""
    if not self.dim() or statically_known_true(self.shape[dim] <= 1):
        return self.clone()
    dim %= self.dim()
    x = self
    for step in _steps(self.shape[dim]):
        before = _before(x, dim, step, -math.inf)
        most = aten.maximum.default(x, before)
        gap = aten.abs.default(aten.sub.Tensor(x, before))
        rest = aten.log1p.default(aten.exp.default(aten.neg.default(gap)))
        x = aten.where.self(aten.isinf.default(most), most, aten.add.Tensor(most, rest))
    return x


def running_in_groups(
    combine: Callable[..., Any], x: Tensor, group: Tensor, dim: int, neutral: float
) -> Tensor:
    """Return the running result in each of the groups that elements along `dim` are sorted by."""
    other = x.new_full([], neutral)
    for step in _steps(x.shape[dim]):
        same = aten.eq.Tensor(group, _before(group, dim, step, -1))
        before = aten.where.self(same, _before(x, dim, step, neutral), other)
        x = combine(x, before)
    return x


def _sorted(index: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return the elements of `index` in their order, and where each was; equal ones stay so."""
    length = index.shape[dim]
    place = _along(torch.arange(length, device=index.device), index.dim(), dim)
    keys = aten.add.Tensor(index * length, place)
    keys = aten.sort.default(keys, dim)[0]
    return keys // length, keys % length


def _put_last(base: Tensor, dim: int, group: Tensor, x: Tensor) -> Tensor:
    """Return `base` with the last element of each group of sorted ones at the group's place.

    The others go to a place behind all of them, which is cut off.
    """
    size = base.shape[dim]
    pad = [0, 0] * (base.dim() - 1 - dim)
    after = group.narrow(dim, 1, group.shape[dim] - 1)
    after = aten.constant_pad_nd.default(after, [*pad, 0, 1], -1)
    behind = torch.full([], size, device=group.device)
    slot = aten.where.self(aten.ne.Tensor(group, after), group, behind)
    padded = aten.constant_pad_nd.default(base, [*pad, 0, 1], 0)
    filled = aten.scatter.src(padded, dim, slot, x)
    result: Tensor = filled.narrow(dim, 0, size)
    return result


def _prod(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    base = torch.ones_like(self) if include_self else self
    if statically_known_true(index.shape[dim] == 1):
        factors = aten.scatter.src(base, dim, index, src)
    else:
        group, order = _sorted(index, dim)
        product = aten.gather.default(src, dim, order)
        product = running_in_groups(aten.mul.Tensor, product, group, dim, 1)
        factors = _put_last(base, dim, group, product)
    result: Tensor = aten.mul.Tensor(self, factors) if include_self else factors
    return result


def _amax(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    """Sort by value, then by place, and take the last of each place."""
    if statically_known_true(index.shape[dim] == 1):
        found = aten.scatter.src(self, dim, index, src)
    else:
        values, order = aten.sort.default(src, dim)
        group, order = _sorted(aten.gather.default(index, dim, order), dim)
        found = _put_last(self, dim, group, aten.gather.default(values, dim, order))
    result: Tensor = aten.maximum.default(self, found) if include_self else found
    return result


def _mirrored(x: Tensor) -> Tensor:
    """Return numbers in the opposite order; NaN stays."""
    if x.is_floating_point():
        return -x
    return ~x


def _amin(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    return _mirrored(_amax(_mirrored(self), dim, index, _mirrored(src), include_self))


def _sum(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    base = self if include_self else aten.scatter.value(self, dim, index, 0)
    result: Tensor = aten.scatter_add.default(base, dim, index, src)
    return result


def _mean(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool) -> Tensor:
    total = _sum(self, dim, index, src, include_self)
    begun = torch.ones_like(self) if include_self else torch.zeros_like(self)
    counts = aten.scatter_add.default(begun, dim, index, torch.ones_like(src))
    counts = counts if include_self else aten.clamp.default(counts, 1)
    real = total.is_floating_point()
    return total / counts if real else torch.div(total, counts, rounding_mode="floor")


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": in_float32(_sum),
    "mean": in_float32(_mean),
    "prod": in_float32(_prod),
    "amax": _amax,
    "amin": _amin,
}


def _scatter_reduce(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    given, found, added = (t.reshape(1) if t.dim() == 0 else t for t in (self, index, src))
    if statically_known_true(found.numel() == 0):
        return self.clone()
    dim %= given.dim()
    for i, size in enumerate(found.shape):
        if not statically_known_true(size == added.shape[i]):
            added = added.narrow(i, 0, size)
    found = found.to(torch.int64)
    return REDUCTIONS[reduce](given, dim, found, added, include_self).reshape(self.shape)


def _index_reduce(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    added = source.reshape(1) if source.dim() == 0 else source
    dim %= added.dim()
    found = _along(index, added.dim(), dim).expand(added.shape)
    return _scatter_reduce(self, dim, found, added, reduce, include_self=include_self)


def _segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Reduce runs of elements along `axis`; what belongs to none goes behind all, is cut off."""
    dim = axis % data.dim()
    place = torch.arange(data.shape[dim], device=data.device)
    if offsets is not None:
        bounds = offsets.to(torch.int64)
    else:
        assert lengths is not None
        ends = aten.cumsum.default(lengths.to(torch.int64), -1)
        bounds = aten.constant_pad_nd.default(ends, [1, 0], 0)
    count = bounds.shape[-1] - 1
    before = aten.ge.Tensor(place, bounds.unsqueeze(-1)).sum(-2) - 1
    group = torch.where(aten.lt.Scalar(before, 0), count, before)
    group = group.reshape([*group.shape, *[1] * (data.dim() - dim - 1)]).expand(data.shape)
    shape = [*data.shape[:dim], count + 1, *data.shape[dim + 1 :]]
    kind = {"max": "amax", "min": "amin", "mean": "sum"}.get(reduce, reduce)
    neutral = {"amax": -math.inf, "amin": math.inf, "prod": 1.0}.get(kind, 0.0)
    base = data.new_full(shape, neutral if initial is None else initial)
    found = _scatter_reduce(base, dim, group, data, kind).narrow(dim, 0, count)
    if reduce != "mean":
        return found
    sizes = aten.sub.Tensor(bounds.narrow(-1, 1, count), bounds.narrow(-1, 0, count))
    sizes = sizes.reshape([*sizes.shape, *[1] * (data.dim() - dim - 1)]).to(data.dtype)
    mean = found / sizes
    return mean if initial is None else torch.where(aten.eq.Scalar(sizes, 0), found, mean)


SCANS: dict[OpOverload, Callable[..., Any]] = {
    aten.cumprod.default: _cumprod,
    aten.cummax.default: _running(aten.maximum.default, _least),
    aten.cummin.default: _running(aten.minimum.default, _most),
    aten.logcumsumexp.default: in_float32(_logcumsumexp),
    aten.scatter_reduce.two: _scatter_reduce,
    aten.index_reduce.default: _index_reduce,
    aten.segment_reduce.default: _segment_reduce,
}
