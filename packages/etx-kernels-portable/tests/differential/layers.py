# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of convolutions, pools and what resamples."""

from __future__ import annotations

from typing import Any

import torch

from differential.reductions import like
from differential.registry import draws
from differential.values import FLOATING, Draw


def each(d: Draw, n: int, low: int, high: int) -> list[int]:
    if d.chance(0.3):
        return [d.int(low, high)] * n
    return [d.int(low, high) for _ in range(n)]


def convolution_parts(d: Draw, dtype: torch.dtype) -> tuple[Any, Any, list[Any]]:
    """Input, weight, and stride to groups."""
    n, groups = d.one(1, 2, 2, 2, 3), d.one(1, 1, 1, 2, 4)
    transposed = d.chance(0.3)
    c_in, c_out = groups * d.int(1, 3), groups * d.int(1, 3)
    kernel, sizes = each(d, n, 1, 3), [d.int(1, 8 if n < 3 else 5) for _ in range(n)]
    odd = d.chance(0.04)
    rest = [each(d, n, 0 if odd else 1, 3), each(d, n, 0, 2), each(d, n, 0 if odd else 1, 2)]
    if transposed:
        weight = [c_in, c_out // groups, *kernel]
        extra = [d.int(0, max(max(a, b) - 1, 0)) for a, b in zip(rest[0], rest[2], strict=True)]
    else:
        weight = [c_out, c_in // groups, *kernel]
        extra = [0] * n
    x = d.tensor([d.one(1, 1, 2, 0), c_in, *sizes], dtype)
    w = d.tensor(weight, like(d, dtype))
    return x, w, [*rest, transposed, extra, groups]


@draws("aten::convolution.out")
def convolution(d: Draw) -> list[Any]:
    dtype = d.dtype()
    x, w, rest = convolution_parts(d, dtype)
    transposed, groups = rest[3], rest[5]
    c_out = w.shape[1] * groups if transposed else w.shape[0]
    bias = d.tensor([c_out], like(d, dtype)) if d.chance(0.6) else None
    return [x, w, bias, *rest]


@draws("aten::convolution_backward.out")
def convolution_backward(d: Draw) -> list[Any]:
    dtype = d.dtype()
    x, w, rest = convolution_parts(d, dtype)
    try:
        y = torch.ops.aten.convolution.default(x.to("meta"), w.to("meta"), None, *rest)
    except (RuntimeError, IndexError, ArithmeticError):
        y = x
    bias = [y.shape[1]] if y.dim() > 1 else None
    return [d.tensor(y.shape, dtype), x, w, bias, *rest, [True, True, True]]


def window(d: Draw, stride: bool = True) -> list[Any]:
    kernel = each(d, 2, 1, 4)
    padding = [d.int(0, k // 2 + d.chance(0.03)) for k in kernel]
    return [kernel, each(d, 2, 1, 3) if stride or d.chance(0.7) else [], padding]


def image(d: Draw, dtype: torch.dtype | None = None) -> torch.Tensor:
    sizes = [d.int(1, 9), d.int(1, 9)]
    batch = [d.int(1, 3), d.int(1, 3)] if d.chance(0.8) else [d.int(1, 3)]
    return d.tensor([*batch, *sizes], dtype)


@draws("aten::max_pool2d_with_indices.out")
def max_pool(d: Draw) -> list[Any]:
    return [image(d), *window(d, False), each(d, 2, 1, 2), d.chance(0.3)]


@draws("aten::max_pool2d_with_indices_backward.grad_input")
def max_pool_backward(d: Draw) -> list[Any]:
    x = image(d)
    args = [*window(d), each(d, 2, 1, 2), d.chance(0.3)]
    try:
        y, indices = torch.ops.aten.max_pool2d_with_indices(x, *args)
    except RuntimeError:
        y, indices = x, torch.zeros(x.shape, dtype=torch.int64)
    inside = indices.clamp(0, x.shape[-1] * x.shape[-2] - 1)
    return [d.tensor(y.shape, x.dtype), x, *args, inside]


@draws("aten::avg_pool2d.out")
def avg_pool(d: Draw) -> list[Any]:
    divisor = d.one(None, None, None, 1, 3, -2, 0)
    return [image(d), *window(d, False), d.chance(0.3), d.chance(0.5), divisor]


@draws("aten::_adaptive_avg_pool2d.out")
def adaptive_avg_pool(d: Draw) -> list[Any]:
    return [image(d), each(d, 2, 0 if d.chance(0.05) else 1, 9)]


def scales(d: Draw) -> list[float]:
    return [d.one(0.5, 1.0, 1.5, 2.0, 2.3, 3.0), d.one(0.5, 1.0, 1.3, 2.0, 3.0)]


def plane(d: Draw) -> torch.Tensor:
    return d.tensor([d.int(1, 2), d.int(1, 3), d.int(1, 9), d.int(1, 9)], d.dtype(*FLOATING))


@draws("aten::upsample_nearest2d.vec_out")
def nearest(d: Draw) -> list[Any]:
    return [plane(d), *d.one((each(d, 2, 1, 12), None), (None, scales(d)))]


@draws("aten::upsample_bilinear2d.vec_out")
def bilinear(d: Draw) -> list[Any]:
    sizes, factors = d.one((each(d, 2, 1, 12), None), (None, scales(d)))
    return [plane(d), sizes, d.chance(0.5), factors]


@draws("aten::_upsample_bilinear2d_aa.out")
def antialiased(d: Draw) -> list[Any]:
    return [plane(d), each(d, 2, 1, 12), d.chance(0.5), None, None]


@draws("aten::grid_sampler_2d.out")
def grid_sampler(d: Draw) -> list[Any]:
    x = plane(d)
    grid = d.tensor([x.shape[0], d.int(1, 5), d.int(1, 5), 2], x.dtype)
    grid = grid if d.odd or d.chance(0.3) else (grid / 3).clamp(-1.2, 1.2)
    return [x, grid, d.int(0, 2), d.int(0, 2), d.chance(0.5)]
