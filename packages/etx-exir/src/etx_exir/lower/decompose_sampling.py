# SPDX-License-Identifier: BSD-3-Clause
"""Images at other places: ``grid_sampler_3d`` as indexing, in the order and dtype in which eager
computes, and bicubic resizing of images of bytes, in eager's fixed point.

One dimension after the other, the last one first, the latter is a sum of bytes times integer
weights of at most 15 digits, rounded to bytes. Of symbolic sizes it is computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decompositions as torch_decompositions
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from etx_exir.lower.in_float32 import in_float32

aten = torch.ops.aten

NEAREST = 1
ZEROS, REFLECTION = 0, 2
OUTPUT_SIZE: Callable[..., Any] = torch_decompositions.upsample_compute_output_size
DIGITS = 15


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


def _cubic(part: Tensor) -> Sequence[Tensor]:
    """Return the weights of ATen's cubic convolution, whose A is -0.75, at four places."""

    def near(x: Tensor) -> Tensor:
        return (1.25 * x - 2.25) * x * x + 1.0

    def far(x: Tensor) -> Tensor:
        return ((-0.75 * x + 3.75) * x - 6.0) * x + 3.0

    return far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)


def _taps(
    size: int, out: int, align_corners: bool, scale: float | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Return what an output adds up: places of the input, each once, and float64 weights."""
    if align_corners:
        step = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        step = 1.0 / scale if scale is not None and scale > 0 else size / out
    at = torch.arange(out, dtype=torch.float64)
    place = at * step if align_corners else (at + 0.5) * step - 0.5
    first = torch.floor(place).clamp(max=size - 1)
    weights = _cubic((place - first).clamp(0.0, 1.0))
    left = first + (1 - len(weights) // 2)
    places = [(left + k).clamp(0, size - 1) for k in range(len(weights))]
    united = []
    for k, place in enumerate(places):
        total = weights[k]
        for other, weight in zip(places[k + 1 :], weights[k + 1 :], strict=True):
            total = total + weight * (other == place)
        for other in places[:k]:
            total = total * (other != place)
        united.append(total)
    return [place.to(torch.int64) for place in places], united


def _resized(x: Tensor, dim: int, *given: Any) -> Tensor:
    with _disable_current_modes():
        most = max(float(weight.max()) for weight in _taps(x.shape[dim], *given)[1])
    digits = 0
    while digits < 22 and int(0.5 + most * 2 ** (digits + 1)) < 1 << DIGITS:
        digits += 1
    total: Any = 2 ** (digits - 1)
    shape = [-1, *([1] * (x.dim() - 1 - dim))]
    for place, weight in zip(*_taps(x.shape[dim], *given), strict=True):
        half = torch.where(weight < 0, -0.5, 0.5)
        factor = (half + weight * 2.0**digits).to(torch.int32).view(shape)
        total = x.index_select(dim, place).to(torch.int32) * factor + total
    scaled = aten.div.Tensor_mode(total, 2**digits, rounding_mode="floor")
    result: Tensor = aten.clamp.default(scaled, 0, 255).to(torch.uint8)
    return result


def _resize(
    x: Tensor,
    sizes: Sequence[Any],
    align_corners: bool,
    scales: Sequence[float | None] | None,
) -> Tensor | None:
    """Return the image of another size; None where it has no bytes or symbolic sizes."""
    if x.dtype != torch.uint8 or not all(isinstance(n, int) for n in (*x.shape[2:], *sizes)):
        return None
    for dim in (3, 2):
        if x.shape[dim] == sizes[dim - 2]:
            continue
        scale = scales[dim - 2] if scales else None
        x = _resized(x, dim, sizes[dim - 2], align_corners, scale)
    return x


def _bicubic(
    self: Tensor,
    output_size: Sequence[Any],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    found = _resize(self, output_size, align_corners, (scales_h, scales_w))
    return BY_SIZE(self, output_size, align_corners, scales_h, scales_w) if found is None else found


def _bicubic_vec(
    input: Tensor,
    output_size: Sequence[Any] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> Any:
    sizes = OUTPUT_SIZE(input.size(), output_size, scale_factors)
    found = _resize(input, sizes, align_corners, scale_factors)
    return BY_EITHER(input, output_size, align_corners, scale_factors) if found is None else found


BY_SIZE = in_float32(torch_decompositions.upsample_bicubic2d_default)
BY_EITHER = in_float32(torch_decompositions.upsample_bicubic2d_vec)
BYTES: dict[OpOverload, Callable[..., Any]] = {
    aten.upsample_bicubic2d.default: _bicubic,
    aten.upsample_bicubic2d.vec: _bicubic_vec,
}
