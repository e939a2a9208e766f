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


def _taken(input: Tensor, corner: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Return the numbers at `corner`, and which of them lie in `input`."""
    sizes = input.shape[2:]
    inside = corner[0] >= 0
    for place, size in zip(corner, sizes, strict=True):
        inside = inside & (place >= 0) & (place <= size - 1)
    places = [torch.where(inside, place, 0).to(torch.int64).unsqueeze(1) for place in corner]
    batches = torch.arange(input.shape[0], device=input.device).view(-1, 1, 1, 1, 1)
    channels = torch.arange(input.shape[1], device=input.device).view(1, -1, 1, 1, 1)
    return aten.index.Tensor(input, [batches, channels, *places]), inside.unsqueeze(1)


def _grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    sizes = input.shape[2:]
    places = [
        _place(grid.select(-1, 2 - axis), size, padding_mode, align_corners)
        for axis, size in enumerate(sizes)
    ]
    if interpolation_mode == NEAREST:
        values, inside = _taken(input, tuple(place.round() for place in places))
        return torch.where(inside, values, 0)
    firsts = [place.floor() for place in places]
    total = None
    for steps in product((0, 1), repeat=3):
        corner = tuple(first + step for first, step in zip(firsts, steps, strict=True))
        weights = [
            place - first if step else first + 1 - place
            for place, first, step in zip(places, firsts, steps, strict=True)
        ]
        values, inside = _taken(input, corner)
        weight = (weights[2] * weights[1] * weights[0]).unsqueeze(1)
        part = torch.where(inside, values * weight, 0)
        total = part if total is None else total + part
    return total


GRID: dict[OpOverload, Callable[..., Any]] = {aten.grid_sampler_3d.default: _grid_sampler_3d}
