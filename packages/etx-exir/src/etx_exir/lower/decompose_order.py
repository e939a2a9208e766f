# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of what looks for places in an order.

Where several numbers are equal, eager leaves open whose index it returns; these do too, except
`mode`, whose index is the last (eager's is, of up to 16 numbers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import guard_or_false

aten = torch.ops.aten


def _length(self: Tensor, dim: int) -> Any:
    return self.shape[dim] if self.dim() else 1


def _kthvalue(self: Tensor, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the last of the `k` smallest; NaN is the largest number."""
    x = self if self.dim() else self.reshape(1)
    least = aten.topk.default(x, k, dim, False, True)
    if not self.dim():
        return tuple(part.reshape(()) for part in least)
    return tuple(part.narrow(dim, k - 1, 1) if keepdim else part.select(dim, -1) for part in least)


def _median(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    """Return the lower of two in the middle, or the first NaN."""
    values, indices = _kthvalue(self, (_length(self, dim) + 1) // 2, dim, keepdim)
    if not self.is_floating_point():
        return values, indices
    most, first = aten.max.dim(self, dim, keepdim)
    missing = aten.isnan.default(most)
    return torch.where(missing, most, values), torch.where(missing, first, indices)


def _nanmedian(self: Tensor, dim: int, keepdim: bool = False) -> Any:
    if not self.is_floating_point():
        return _median(self, dim, keepdim)
    x = self if self.dim() else self.reshape(1)
    values, indices = aten.topk.default(x, x.shape[dim], dim, False, True)
    count = aten.logical_not.default(aten.isnan.default(x)).sum(dim, keepdim=True)
    middle = aten.clamp.default((count + 1) // 2 - 1, 0)
    found = [part.gather(dim, middle) for part in (values, indices)]
    if not self.dim():
        return tuple(part.reshape(()) for part in found)
    return tuple(part if keepdim else part.squeeze(dim) for part in found)


def _of_all(median: Callable[..., Any]) -> Callable[[Tensor], Any]:
    def compute(self: Tensor) -> Any:
        if guard_or_false(self.numel() == 0):
            least = math.nan if self.is_floating_point() else torch.iinfo(self.dtype).min
            return torch.full((), least, dtype=self.dtype, device=self.device)
        return median(self.reshape(-1), 0)[0]

    return compute


def _mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """Return the least of the most frequent numbers, each NaN being another, and the last index.

    Runs of equal numbers are numbered along the sorted ones; the longest one's last is taken.
    What eager returns of a NaN among numbers that differ depends on their places.
    """
    if self.dtype == torch.bool:
        value, index = _mode(self.to(torch.uint8), dim, keepdim)
        return value.to(torch.bool), index
    x = self.movedim(dim, -1) if self.dim() else self.reshape(1)
    length = x.shape[-1]
    ordered = aten.topk.default(x, length, -1, False, True)[0]
    ends = aten.ne.Tensor(ordered.narrow(-1, 1, length - 1), ordered.narrow(-1, 0, length - 1))
    runs = aten.constant_pad_nd.default(aten.cumsum.default(ends.to(torch.int64), -1), [1, 0])
    lengths = torch.zeros_like(runs).scatter_add(-1, runs, torch.ones_like(runs))
    longest = aten.argmax.default(lengths, -1, True)
    last = aten.le.Tensor(runs, longest).sum(-1, keepdim=True) - 1
    value = ordered.gather(-1, last)
    places = torch.arange(length, device=x.device)
    index = aten.amax.default(torch.where(aten.eq.Tensor(x, value), places, 0), [-1], True)
    if not self.dim():
        return value.reshape(()), index.reshape(())
    if keepdim:
        return value.movedim(-1, dim), index.movedim(-1, dim)
    return value.squeeze(-1), index.squeeze(-1)


FEW_EDGES = 8  # Comparing with each of them is quicker than looking for the place.


def _passed(edges: Tensor, values: Any, right: bool) -> Any:
    ahead = torch.gt(edges, values) if right else torch.ge(edges, values)
    return aten.logical_not.default(ahead)  # a NaN passes all


def _place(edges: Tensor, values: Tensor, length: int, right: bool) -> Tensor:
    """Halve the numbers between which each value lies, until there is one."""
    is_line = edges.dim() == 1
    asked = values.reshape(-1) if is_line else values
    place = torch.zeros_like(asked, dtype=torch.int64)
    while length:
        half = (length + 1) // 2
        last = edges.gather(-1, place + (half - 1))
        place = torch.where(_passed(last, asked, right), place + half, place)
        length -= half
    return place.reshape(values.shape)


def _count(edges: Tensor, values: Any, out_int32: bool, right: bool) -> Any:
    """Return how many of sorted numbers each value has passed."""
    length = edges.shape[-1]
    if isinstance(values, Tensor) and isinstance(length, int) and length > FEW_EDGES:
        count = _place(edges, values, length, right)
    else:
        if isinstance(values, Tensor):
            values = values.unsqueeze(-1)
            edges = edges if edges.dim() == 1 else edges.unsqueeze(-2)
        count = _passed(edges, values, right).sum(-1)
    return count.to(torch.int32) if out_int32 else count


def _searchsorted(
    sorted_sequence: Tensor,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    """Return places among sorted numbers; a sequence that is not sorted has no answer."""
    edges = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    return _count(edges, self, out_int32, right or side == "right")


def _bucketize(
    self: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    return _count(boundaries, self, out_int32, right)


def _histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Count in int64 the numbers of each bin; of equal bounds, those of the data are taken."""
    if guard_or_false(self.numel() == 0):
        return torch.zeros(bins, dtype=self.dtype, device=self.device)
    x, low, high = self.reshape(-1), min, max
    if min == max:
        low, high = aten.amin.default(x), aten.amax.default(x)
        same = aten.eq.Tensor(low, high)
        low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = torch.where(inside, (x - low) * bins / (high - low), 0).to(torch.int64)
    counts = torch.zeros(bins, dtype=torch.int64, device=self.device)
    place = aten.clamp.default(place, None, bins - 1)
    return counts.scatter_add(0, place, inside.to(torch.int64)).to(self.dtype)


def _counted(
    x: Tensor, edges: Tensor, weight: Tensor | None, density: bool
) -> tuple[Tensor, Tensor]:
    """Sum the weights between edges; the last one belongs to its bin."""
    flat, bins = x.reshape(-1), edges.shape[0] - 1
    passed = _count(edges, flat, False, True)
    last = aten.eq.Tensor(flat, edges.select(0, -1))
    place = torch.where(last, bins, passed)
    inside = aten.logical_and.default(aten.gt.Scalar(place, 0), aten.le.Scalar(place, bins))
    inside = aten.logical_and.default(inside, aten.le.Tensor(flat, edges.select(0, -1)))
    weights = torch.ones_like(flat) if weight is None else weight.reshape(-1)
    weights = torch.where(inside, weights, 0)
    place = aten.clamp.default(place - 1, 0, bins - 1)
    counts = torch.zeros(bins, dtype=x.dtype, device=x.device).scatter_add(0, place, weights)
    if density:
        widths = aten.sub.Tensor(edges.narrow(0, 1, bins), edges.narrow(0, 0, bins))
        counts = counts / widths / counts.sum()
    return counts, edges


def _histogram(
    self: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Count between edges as far apart; they go up from the first, and down from the last."""
    if range is not None or guard_or_false(self.numel() == 0):
        least, most = range or (0.0, 1.0)
        low, high = (torch.full((), edge, dtype=self.dtype) for edge in (least, most))
    else:
        low, high = aten.amin.default(self), aten.amax.default(self)
    same = aten.eq.Tensor(low, high)
    low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
    step, place = (high - low) / bins, torch.arange(bins + 1, device=self.device)
    up, down = low + step * place, high - step * (bins - place)
    edges = torch.where(aten.lt.Scalar(place, (bins + 1) // 2), up, down)
    return _counted(self, edges, weight, density)


def _histogram_of_edges(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> Any:
    return _counted(self, bins.clone(), weight, density)


ORDER: dict[OpOverload, Callable[..., Any]] = {
    aten.kthvalue.default: _kthvalue,
    aten.median.default: _of_all(_median),
    aten.median.dim: _median,
    aten.nanmedian.default: _of_all(_nanmedian),
    aten.nanmedian.dim: _nanmedian,
    aten.mode.default: _mode,
    aten.searchsorted.Tensor: _searchsorted,
    aten.searchsorted.Scalar: _searchsorted,
    aten.bucketize.Scalar: _bucketize,
    aten.bucketize.Tensor: _bucketize,
    aten.histc.default: _histc,
    aten.histogram.bin_ct: _histogram,
    aten.histogram.bins_tensor: _histogram_of_edges,
}
