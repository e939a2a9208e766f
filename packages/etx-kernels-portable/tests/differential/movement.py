# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of operators that move elements: views as copies, joins, pads and indices."""

from __future__ import annotations

import math
from typing import Any

import torch

from differential.registry import draws
from differential.values import COMMON, Draw


@draws("aten::view_copy.out")
def view(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype())
    rest, sizes = x.numel(), []
    while rest > 1 and len(sizes) < 8:
        size = d.one(*(n for n in range(1, min(rest, 40) + 1) if rest % n == 0))
        sizes.append(size)
        rest //= size
        if d.chance(0.3):
            break
    sizes = [*sizes, rest]
    if d.chance(0.3):
        sizes[d.int(0, len(sizes) - 1)] = -1
    return [x, sizes if d.chance(0.9) or x.numel() != 1 else []]


@draws("aten::squeeze_copy.dim_out", "aten::select_copy.int_out", "aten::unsqueeze_copy.out")
def of_dim(d: Draw) -> list[Any]:
    name = d.kernel.name
    x = d.tensor(d.shape(high=8 if "unsqueeze" in name else 9), d.any_dtype())
    dim = d.dim(x.dim() + ("unsqueeze" in name))
    if "select" not in name:
        return [x, dim]
    size = x.shape[dim] if x.dim() and -x.dim() <= dim < x.dim() else 1
    return [x, dim, d.int(-size, max(size - 1, 0)) + d.chance(0.03)]


@draws("aten::squeeze_copy.dims_out", "aten::permute_copy.out", "aten::flip.out")
def of_dims(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype())
    return [x, d.dims(x.dim(), 9 if "permute" in d.kernel.name else 0)]


@draws("aten::view_as_real_copy.out")
def reals(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(high=8), d.one(torch.complex64, torch.complex128))]


@draws("aten::view_as_complex_copy.out")
def pairs(d: Draw) -> list[Any]:
    return [d.tensor([*d.shape(high=7), 2], d.one(torch.float32, torch.float64))]


@draws("aten::transpose_copy.int_out")
def transpose(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype())
    return [x, d.dim(x.dim()), d.dim(x.dim())]


@draws("aten::t_copy.out")
def t(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(high=2), d.any_dtype())]


@draws("aten::pixel_shuffle.out", "aten::pixel_unshuffle.out")
def pixels(d: Draw) -> list[Any]:
    r, (h, w), batch = d.int(1, 3), (d.int(1, 4), d.int(1, 4)), d.shape(high=2)
    if "unshuffle" in d.kernel.name:
        return [d.tensor([*batch, d.int(1, 3), h * r, w * r], d.any_dtype()), r]
    return [d.tensor([*batch, d.int(1, 3) * r * r, h, w], d.any_dtype()), r]


def bound(d: Draw, size: int) -> int | None:
    return d.one(None, d.int(-size - 2, size + 2), 0, 2**63 - 1)


@draws("aten::slice_copy.Tensor_out")
def slices(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), d.any_dtype())
    dim = d.int(-x.dim(), x.dim() - 1)
    return [x, dim, bound(d, x.shape[dim]), bound(d, x.shape[dim]), d.int(1, 3) - d.chance(0.02)]


@draws("aten::slice_scatter.out")
def slice_scatter(d: Draw) -> list[Any]:
    x, dim, start, end, step = slices(d)
    part = torch.ops.aten.slice.Tensor(x, dim, start, end, max(step, 1))
    return [x, d.tensor(part.shape, x.dtype), dim, start, end, step]


@draws("aten::select_scatter.out")
def select_scatter(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), d.any_dtype())
    dim = d.int(-x.dim(), x.dim() - 1)
    size = x.shape[dim]
    rest = [s for i, s in enumerate(x.shape) if i != dim % x.dim()]
    return [x, d.tensor(rest, x.dtype), dim, d.int(-size, max(size - 1, 0))]


@draws("aten::narrow_copy.out")
def narrow(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), d.any_dtype())
    dim = d.int(-x.dim(), x.dim() - 1)
    start = d.int(0, x.shape[dim])
    return [x, dim, start, d.int(0, x.shape[dim] - start)]


@draws("aten::expand_copy.out")
def expand(d: Draw) -> list[Any]:
    shape = [1 if d.chance(0.4) else s for s in d.shape(high=5)]
    sizes = [d.one(-1, s, d.int(0, 4) if s == 1 else s) for s in shape]
    return [d.tensor(shape, d.any_dtype()), [*d.shape(high=2), *sizes], False]


@draws("aten::repeat.out")
def repeat(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(high=5), d.any_dtype())
    return [x, [d.int(0 if d.chance(0.1) else 1, 3) for _ in range(x.dim() + d.int(0, 2))]]


@draws("aten::roll.out")
def roll(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype())
    dims = d.dims(x.dim())
    return [x, [d.int(-9, 9) for _ in dims] or [d.int(-9, 9)], dims]


@draws("aten::as_strided_copy.out")
def as_strided(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype()).contiguous()
    sizes = [d.int(0, 3) for _ in range(d.rank(high=4))]
    return [x, sizes, [d.int(0, 4) for _ in sizes], d.one(None, 0, d.int(0, 3))]


@draws("aten::diagonal_copy.out")
def diagonal(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=2), d.any_dtype())
    return [x, d.int(-4, 4), d.dim(x.dim()), d.dim(x.dim())]


@draws("aten::unfold_copy.out")
def unfold(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(high=8), d.any_dtype())
    dim = d.dim(x.dim())
    size = x.shape[dim] if x.dim() and -x.dim() <= dim < x.dim() else 1
    return [x, dim, d.int(0, size) + d.chance(0.03), d.int(1, 3)]


@draws("aten::cat.out")
def cat(d: Draw) -> list[Any]:
    shape, dtype = d.shape(low=1), d.dtype()
    dim, parts = d.int(0, len(shape) - 1), []
    for _ in range(d.int(1, 4)):
        shape[dim] = d.int(0, 4)
        parts.append(d.tensor([0] if d.chance(0.05) else shape, dtype))
    if d.chance(0.2):
        parts[0] = d.tensor(parts[0].shape, d.one(*COMMON))
    return [parts, dim - len(shape) if d.chance(0.3) else dim]


@draws("aten::stack.out")
def stack(d: Draw) -> list[Any]:
    shape, dtype = d.shape(high=8), d.dtype()
    parts = [d.tensor(shape, dtype) for _ in range(d.int(1, 4))]
    if d.chance(0.2):
        parts[0] = d.tensor(shape, d.one(*COMMON))
    return [parts, d.dim(len(shape) + 1)]


@draws("aten::split_copy.Tensor_out")
def split(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), d.any_dtype())
    return [x, d.int(1, 4), d.int(-x.dim(), x.dim() - 1)]


@draws("aten::split_with_sizes_copy.out")
def split_with_sizes(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), d.any_dtype())
    dim = d.int(-x.dim(), x.dim() - 1)
    cut = d.int(0, x.shape[dim])
    return [x, [cut, x.shape[dim] - cut + d.chance(0.03)], dim]


@draws("aten::unbind_copy.int_out")
def unbind(d: Draw) -> list[Any]:
    shape = [min(s, 5) for s in d.shape(low=1)]
    return [d.tensor(shape, d.any_dtype()), d.int(-len(shape), len(shape) - 1)]


@draws("aten::constant_pad_nd.out")
def constant_pad(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(high=5))
    pads = [d.int(-1 if d.chance(0.3) else 0, 3) for _ in range(2 * d.int(0, x.dim()))]
    return [x, pads, d.one(0, 0.5, d.number_for(x.dtype))]


@draws(*(f"aten::re{how}ection_pad{n}d.out" for how in ("fl",) for n in (1, 2, 3)))
@draws(*(f"aten::replication_pad{n}d.out" for n in (1, 2, 3)))
def edge_pad(d: Draw) -> list[Any]:
    n = int(d.kernel.name[-6])
    shape = [d.int(1, 6) for _ in range(n + d.one(1, 1, 2))]
    return [d.tensor(shape), [d.int(-1 if d.chance(0.2) else 0, 3) for _ in range(2 * n)]]


def index_lists(d: Draw, shape: list[int]) -> list[torch.Tensor | None]:
    common = d.shape(high=2)
    if d.chance(0.12):
        used = d.int(1, len(shape))
        return [d.tensor(shape[:used], torch.bool)]
    found: list[torch.Tensor | None] = []
    for size in shape[: d.int(1, len(shape))]:
        if d.chance(0.3):
            found.append(None)
        elif d.chance(0.1):
            found.append(d.tensor([size], torch.bool))
        else:
            found.append(d.within(d.one(common, common, [1], []), size))
    return found


@draws("aten::index.Tensor_out")
def index(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(1, 5), d.any_dtype())
    return [x, index_lists(d, list(x.shape))]


@draws("aten::index_put.out", "aten::index_put_")
def index_put(d: Draw) -> list[Any]:
    x, indices = d.tensor(d.shape(1, 5)), []
    indices = index_lists(d, list(x.shape))
    try:
        shape = list(
            x[
                tuple(
                    slice(None)
                    if i is None
                    else i.long().clamp(0, 0)
                    if i.dtype != torch.bool
                    else i
                    for i in indices
                )
            ].shape
        )
    except (IndexError, RuntimeError):
        shape = []
    values = d.tensor(d.one(shape, shape, [], shape[1:]), x.dtype)
    return [x, indices, values, d.chance(0.4)]


@draws("aten::index_select.out")
def index_select(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype())
    dim = d.dim(x.dim())
    size = x.shape[dim] if x.dim() and -x.dim() <= dim < x.dim() else 1
    return [x, dim, d.within(d.one([d.int(0, 5)], [d.int(0, 5)], []), size)]


@draws("aten::embedding.out")
def embedding(d: Draw) -> list[Any]:
    x = d.tensor([d.int(1, 9), d.size()], d.any_dtype())
    indices = torch.randint(0, x.shape[0], d.shape(high=3), generator=d.generator)
    return [x, indices.to(d.one(torch.int64, torch.int32)), d.one(-1, 0), False, False]


def indexed(d: Draw, dtype: torch.dtype) -> tuple[torch.Tensor, int, torch.Tensor]:
    x = d.tensor(d.shape(high=5), dtype)
    dim = d.dim(x.dim())
    wrapped = dim % x.dim() if x.dim() else 0
    shape = [d.int(0, 4) if i == wrapped else d.int(1, s) if s else 0
             for i, s in enumerate(x.shape)]  # fmt: skip
    return x, dim, d.within(shape, x.shape[wrapped] if x.dim() else 1, torch.int64)


@draws("aten::gather.out")
def gather(d: Draw) -> list[Any]:
    return [*indexed(d, d.any_dtype()), False]


@draws("aten::scatter.src_out", "aten::scatter_add.out")
def scatter(d: Draw) -> list[Any]:
    x, dim, chosen = indexed(d, d.dtype())
    return [x, dim, chosen, d.tensor([s + d.int(0, 1) for s in chosen.shape], x.dtype)]


@draws("aten::scatter_reduce.two_out")
def scatter_reduce(d: Draw) -> list[Any]:
    how = d.one("sum", "prod", "mean", "amax", "amin")
    return [*scatter(d), how, d.chance(0.5)]


@draws("aten::scatter.value_out")
def scatter_value(d: Draw) -> list[Any]:
    x, dim, chosen = indexed(d, d.dtype())
    return [x, dim, chosen, d.number_for(x.dtype)]


@draws("aten::masked_select.out")
def masked_select(d: Draw) -> list[Any]:
    shape = d.shape()
    return [d.tensor(shape, d.any_dtype()), d.tensor(d.broadcastable(shape), torch.bool)]


@draws("aten::masked_scatter.out")
def masked_scatter(d: Draw) -> list[Any]:
    shape, dtype = d.shape(), d.any_dtype()
    mask = d.tensor(d.broadcastable(shape), torch.bool)
    return [d.tensor(shape, dtype), mask, d.tensor([math.prod(shape) + 3], dtype)]


@draws("aten::repeat_interleave.Tensor_out")
def repeat_interleave(d: Draw) -> list[Any]:
    counts = torch.randint(0, 4, [d.int(0, 6)], generator=d.generator)
    total = int(counts.sum())
    return [counts.to(d.one(torch.int64, torch.int32)), d.one(None, total)]


@draws("aten::sym_size.int")
def sym_size(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), d.any_dtype())
    return [x, d.int(-x.dim(), x.dim() - 1)]


@draws("aten::sym_numel")
def sym_numel(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(), d.any_dtype())]


@draws("aten::_local_scalar_dense")
def item(d: Draw) -> list[Any]:
    return [d.tensor(d.one([], [1], [1, 1]))]
