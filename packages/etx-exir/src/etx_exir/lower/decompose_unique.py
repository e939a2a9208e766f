# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of what tells numbers that differ: their count is known when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["UNIQUE"]

aten = torch.ops.aten


def _runs(first: Tensor, inverse: bool, counts: bool) -> tuple[Any, Any, Any]:
    """Return where runs begin, the run of each place, and how long each is."""
    begins = aten.nonzero.default(first).squeeze(1)
    none = begins.new_empty(0)
    run = aten.cumsum.default(first.to(torch.int64), 0) - 1
    if not counts:
        return begins, run if inverse else none, none
    lengths = torch.zeros_like(run).scatter_add(0, run, torch.ones_like(run))
    lengths = lengths.index_select(0, run.index_select(0, begins))
    return begins, run if inverse else none, lengths


def _differs(x: Tensor) -> Tensor:
    """Tell of each row whether it begins a run: the first does, and one unlike that before it."""
    length = x.shape[0]
    begin = torch.ones(1, dtype=torch.bool, device=x.device)
    change = aten.ne.Tensor(x.narrow(0, 1, length - 1), x.narrow(0, 0, length - 1))
    if x.dim() > 1:
        change = aten.any.dims(change, list(range(1, x.dim())))
    return torch.cat([begin, change])


def _none(self: Tensor) -> tuple[Any, Any, Any]:
    empty = torch.empty(0, dtype=torch.int64, device=self.device)
    return self.clone(), empty, empty.clone()


def _consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    x = self.reshape(-1) if dim is None else self.movedim(dim, 0)
    begins, run, counts = _runs(_differs(x), return_inverse, return_counts)
    values = x.index_select(0, begins)
    if dim is None:
        return values, run.reshape(self.shape) if return_inverse else run, counts
    return values.movedim(0, dim), run, counts


def _unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    x = self.reshape(-1)
    ordered, order = aten.sort.default(x)
    begins, run, counts = _runs(_differs(ordered), return_inverse, return_counts)
    if return_inverse:
        run = torch.zeros_like(order).scatter(0, order, run).reshape(self.shape)
    return ordered.index_select(0, begins), run, counts


def _unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """Count for each row those below it, by the first column in which they differ: its place."""
    x = self.movedim(dim, 0)
    rows = x.reshape(x.shape[0], -1)
    if rows.dtype == torch.bool:
        rows = rows.to(torch.uint8)
    left, right = rows.unsqueeze(1), rows.unsqueeze(0)
    unlike = aten.ne.Tensor(left, right)
    column = aten.argmax.default(unlike.to(torch.uint8), -1, True)
    less = aten.lt.Tensor(right, left).gather(-1, column).squeeze(-1)
    same = aten.logical_not.default(aten.any.dim(unlike, -1))
    places = torch.arange(x.shape[0], device=x.device)
    earlier = aten.logical_and.default(same, places.unsqueeze(0) < places.unsqueeze(1))
    place = aten.logical_or.default(less, earlier).sum(-1)
    order = torch.zeros_like(place).scatter(0, place, places)
    first = _differs(rows.index_select(0, order))
    begins, run, counts = _runs(first, return_inverse, return_counts)
    if return_inverse:
        run = run.index_select(0, place)
    values = x.index_select(0, order.index_select(0, begins))
    return values.movedim(0, dim), run, counts


def _along(
    self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    return _consecutive(self, return_inverse, return_counts, dim)


def _unless_empty(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if 0 in self.shape:
            return _none(self)
        return function(self, *args, **kwargs)

    return compute


UNIQUE: dict[OpOverload, Callable[..., Any]] = {
    aten._unique2.default: _unless_empty(_unique2),
    aten.unique_dim.default: _unless_empty(_unique_dim),
    aten.unique_consecutive.default: _unless_empty(_consecutive),
    aten.unique_dim_consecutive.default: _unless_empty(_along),
}
