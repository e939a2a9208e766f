# SPDX-License-Identifier: BSD-3-Clause
"""``grid_sampler_3d`` as indexing, in the order and dtype in which eager computes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

NEAREST = 1
ZEROS, REFLECTION = 0, 2


def _reflected(place: Tensor, size: Any, align_corners: bool) -> Tensor:
    if align_corners and size == 1:
        return torch.zeros_like(place)
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    place = (place - low).abs()
    extra = torch.fmod(place, span)
    odd = torch.fmod((place / span).floor(), 2) != 0
    return torch.where(odd, span - extra + low, extra + low)


def _place(grid: Tensor, size: Any, padding_mode: int, align_corners: bool) -> Tensor:
    """Return where in an axis of `size` the numbers of `grid`, from -1 to 1, lie."""
    unit = grid + 1
    place: Tensor = unit / 2 * (size - 1) if align_corners else (unit * size - 1) / 2
    if padding_mode == ZEROS:
        return place
    if padding_mode == REFLECTION:
        place = _reflected(place, size, align_corners)
    place, last = place.clamp(min=0), size - 1
    return torch.where(place < last, place, last)  # a NaN is at the last, as eager has it


def _axis(place: Tensor, size: Any) -> tuple[Tensor, Tensor]:
    """Return the index that `place` is, 0 outside, and where it is inside."""
    inside = (place >= 0) & (place <= size - 1)
    return torch.where(inside, place, 0).to(torch.int64).unsqueeze(1), inside.unsqueeze(1)


def _grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    device, sizes = input.device, input.shape[2:]
    batches = torch.arange(input.shape[0], device=device).view(-1, 1, 1, 1, 1)
    channels = torch.arange(input.shape[1], device=device).view(1, -1, 1, 1, 1)
    nearest = interpolation_mode == NEAREST
    sides: list[list[Any]] = []
    for axis, size in enumerate(sizes):
        place = _place(grid.select(-1, 2 - axis), size, padding_mode, align_corners)
        first = place.round() if nearest else place.floor()
        second = first + 1
        sides.append([(*_axis(first, size), (second - place).unsqueeze(1))])
        if not nearest:
            sides[-1].append((*_axis(second, size), (place - first).unsqueeze(1)))
    total = None
    for z, y, x in product(*sides):
        values = aten.index.Tensor(input, [batches, channels, z[0], y[0], x[0]])
        part = values if nearest else values * (x[2] * y[2] * z[2])
        part = torch.where(z[1] & y[1] & x[1], part, 0)
        total = part if total is None else total + part
    return total


GRID: dict[OpOverload, Callable[..., Any]] = {aten.grid_sampler_3d.default: _grid_sampler_3d}
