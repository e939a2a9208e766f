# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of reductions, norms, products and what sorts."""

from __future__ import annotations

from typing import Any

import torch

from differential.registry import draws
from differential.values import COMMON, FLOATING, Draw


def some_dims(d: Draw, rank: int) -> Any:
    return d.one(None, [], [d.dim(rank)], d.dims(rank), d.dims(rank, 1))


@draws("aten::sum.IntList_out", "aten::mean.out")
def sums(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, some_dims(d, x.dim()), d.chance(0.5), d.one(None, None, d.one(*COMMON))]


@draws("aten::mean.dtype_out", "aten::prod.out")
def of_all(d: Draw) -> list[Any]:
    return [d.tensor(d.shape()), d.one(None, None, d.one(*COMMON))]


@draws("aten::prod.int_out")
def product(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, d.dim(x.dim()), d.chance(0.5), d.one(None, None, d.one(*COMMON))]


@draws("aten::cumsum.out", "aten::cumprod.out")
def scan(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, d.dim(x.dim()), d.one(None, None, d.one(*COMMON))]


@draws("aten::amax.out", "aten::amin.out")
def extremes(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, some_dims(d, x.dim()) or [], d.chance(0.5)]


@draws("aten::any.dims_out")
def any_of_dims(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, some_dims(d, x.dim()), d.chance(0.5)]


@draws("aten::max.unary_out", "aten::min.unary_out", "aten::any.all_out", "aten::nonzero.out")
def whole(d: Draw) -> list[Any]:
    return [d.tensor(d.shape())]


@draws("aten::any.out", "aten::max.dim_max", "aten::min.dim_min")
def of_dim(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, d.dim(x.dim()), d.chance(0.5)]


@draws("aten::argmax.out", "aten::argmin.out")
def argument(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, None if d.chance(0.2) else d.dim(x.dim()), d.chance(0.5)]


@draws("aten::var.out")
def variance(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, some_dims(d, x.dim()), d.chance(0.5), d.chance(0.5)]


@draws("aten::var.correction_out", "aten::var_mean.correction_out")
@draws("aten::std.correction_out", "aten::std_mean.correction_out")
def variance_corrected(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, some_dims(d, x.dim()), d.one(None, 0, 1, 2, 0.5, 1.5), d.chance(0.5)]


@draws("aten::topk.values")
def topk(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    dim = d.dim(x.dim())
    length = x.shape[dim] if x.dim() and -x.dim() <= dim < x.dim() else 1
    return [x, d.int(0, length) + d.chance(0.03), dim, d.chance(0.5), d.chance(0.9)]


@draws("aten::sort.values")
def sort(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, d.dim(x.dim()), d.chance(0.5)]


@draws("aten::sort.values_stable")
def stable_sort(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    return [x, d.one(True, True, False, None), d.dim(x.dim()), d.chance(0.5)]


def like(d: Draw, dtype: torch.dtype) -> torch.dtype:
    return dtype if d.chance(0.93) else d.dtype()


@draws("aten::mm.out")
def mm(d: Draw) -> list[Any]:
    m, k, n, dtype = d.size(), d.size(), d.size(), d.dtype()
    return [d.tensor([m, k], dtype), d.tensor([k + d.chance(0.03), n], like(d, dtype))]


@draws("aten::bmm.out")
def bmm(d: Draw) -> list[Any]:
    b, m, k, n, dtype = d.int(0, 3), d.size(), d.size(), d.size(), d.dtype()
    return [d.tensor([b, m, k], dtype), d.tensor([b, k, n], like(d, dtype))]


@draws("aten::addmm.out")
def addmm(d: Draw) -> list[Any]:
    m, k, n, dtype = d.size(), d.size(), d.size(), d.dtype()
    bias = d.tensor(d.one([n], [m, n], [1, n], [m, 1], [], [1]), like(d, dtype))
    factors = [d.one(1, 1, 0, 2, -1, 0.5), d.one(1, 1, 0, 3, -1, 0.5)]
    return [bias, d.tensor([m, k], dtype), d.tensor([k, n], like(d, dtype)), *factors]


@draws("aten::linear.out")
def linear(d: Draw) -> list[Any]:
    k, n, dtype = d.size(), d.size(), d.dtype()
    bias = d.tensor([n], like(d, dtype)) if d.chance(0.6) else None
    return [d.tensor([*d.shape(high=3), k], dtype), d.tensor([n, k], like(d, dtype)), bias]


@draws("aten::_cdist_forward.out")
def cdist(d: Draw) -> list[Any]:
    batch, width, dtype = d.shape(high=2), d.size(), d.dtype()
    other = batch if d.chance(0.7) else d.broadcastable(batch)
    a, b = d.tensor([*batch, d.size(), width], dtype), d.tensor([*other, d.size(), width], dtype)
    return [a, b, d.one(2.0, 2.0, 1.0, 0.0, float("inf"), 3.0, 0.5), d.one(None, 0, 1, 2)]


@draws("aten::_pdist_forward.out")
def pdist(d: Draw) -> list[Any]:
    return [d.tensor([d.size(), d.size()]), d.one(2.0, 1.0, 0.0, float("inf"), 3.0, 0.5)]


def optional(d: Draw, shape: list[int], dtype: torch.dtype) -> torch.Tensor | None:
    return d.tensor(shape, like(d, dtype)) if d.chance(0.7) else None


@draws("aten::native_layer_norm.out")
def layer_norm(d: Draw) -> list[Any]:
    shape, dtype = d.shape(low=1), d.dtype(*FLOATING)
    last = shape[d.int(0, len(shape) - 1) :]
    parts = [optional(d, last, dtype), optional(d, last, dtype)]
    return [d.tensor(shape, dtype), last, *parts, d.one(1e-5, 1e-3, 0.0)]


@draws("aten::native_group_norm.out")
def group_norm(d: Draw) -> list[Any]:
    dtype, groups = d.dtype(*FLOATING), d.one(1, 2, 3)
    n, c, rest = d.int(0, 3), groups * d.int(1, 3), d.shape(high=3)
    area = int(torch.Size(rest).numel())
    parts = [optional(d, [c], dtype), optional(d, [c], dtype)]
    return [d.tensor([n, c, *rest], dtype), *parts, n, c, area, groups, d.one(1e-5, 1e-3)]


def batch(d: Draw) -> tuple[list[int], int, torch.dtype]:
    c = d.int(1, 5)
    return [d.int(1, 3), c, *d.shape(high=3)], c, d.dtype(*FLOATING)


@draws("aten::_native_batch_norm_legit_no_training.out")
def batch_norm(d: Draw) -> list[Any]:
    shape, c, dtype = batch(d)
    moments = [d.tensor([c], like(d, dtype)), d.tensor([c], dtype).square()]
    parts = [optional(d, [c], dtype), optional(d, [c], dtype)]
    return [d.tensor(shape, dtype), *parts, *moments, 0.1, d.one(1e-5, 1e-3)]


@draws("aten::_native_batch_norm_legit.no_stats_out")
def batch_norm_of_batch(d: Draw) -> list[Any]:
    shape, c, dtype = batch(d)
    parts = [optional(d, [c], dtype), optional(d, [c], dtype)]
    return [d.tensor(shape, dtype), *parts, True, 0.1, d.one(1e-5, 1e-3)]


@draws("aten::_native_batch_norm_legit.out")
def batch_norm_in_training(d: Draw) -> list[Any]:
    shape, c, dtype = batch(d)
    moments = [d.tensor([c], dtype), d.tensor([c], dtype).square()]
    parts = [optional(d, [c], dtype), optional(d, [c], dtype)]
    return [d.tensor(shape, dtype), *parts, *moments, d.chance(0.5), 0.1, d.one(1e-5, 1e-3)]


@draws("aten::_fft_r2c.out")
def fft_of_reals(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(1, 4), d.one(torch.float32, torch.float64))
    dims = [i % x.dim() for i in d.dims(x.dim(), 1)] or [0]
    return [x, dims, d.int(0, 2), d.chance(0.6)]


@draws("aten::_fft_c2c.out")
def fft_of_complex(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(1, 4), d.one(torch.complex64, torch.complex128))
    dims = [i % x.dim() for i in d.dims(x.dim(), 1)] or [0]
    return [x, dims, d.int(0, 2), d.chance(0.6)]


@draws("aten::_fft_c2r.out")
def fft_to_reals(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(1, 4), d.one(torch.complex64, torch.complex128))
    dims = [i % x.dim() for i in d.dims(x.dim(), 1)] or [0]
    half = x.shape[dims[-1]]
    return [x, dims, d.int(0, 2), max(1, 2 * half - 2 + d.int(0, 1))]
