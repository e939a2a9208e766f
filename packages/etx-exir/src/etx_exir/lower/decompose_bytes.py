# SPDX-License-Identifier: BSD-3-Clause
"""Bicubic resizing of images of bytes, in the fixed point in which eager computes it.

One dimension after the other, the last one first, is a sum of bytes times integer weights of at
most 15 digits, rounded to bytes. Of symbolic height and width it is computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decompositions as torch_decompositions
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from etx_exir.lower.in_float32 import in_float32

aten = torch.ops.aten

OUTPUT_SIZE: Callable[..., Any] = torch_decompositions.upsample_compute_output_size
DIGITS = 15


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
