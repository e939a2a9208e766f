# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions where torch has none or a longer one, used where a target has no kernel.

Each of them is written with operators that have kernels, in the fewest instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decompositions as torch_decompositions
from torch._ops import OpOverload

aten = torch.ops.aten

SIMPLER: frozenset[OpOverload] = frozenset(
    {
        aten._reshape_alias.default,
        aten._unsafe_view.default,
        aten.arange.default,
        aten.arange.start,
        aten.detach.default,
        aten.fill.Scalar,
        aten.fill.Tensor,
        aten.floor_divide.default,
        aten.narrow.default,
        aten.ones.default,
        aten.reshape.default,
        aten.sort.default,
        aten.squeeze.dim,
        aten.sum.default,
        aten.t.default,
        aten.transpose.int,
        aten.var.default,
        aten.var.dim,
        aten.zeros.default,
    }
)
"""Decomposed although there are kernels: it is to one operator as fast, which passes and
ExecuTorch know."""


def _hardsigmoid(self: Tensor) -> Any:
    return aten.clamp.default(aten.rsub.Scalar(self, 0.5, -1.0 / 6.0), 0.0, 1.0)


def _hardswish(self: Tensor) -> Any:
    return aten.mul.Tensor(self, _hardsigmoid(self))


def _silu(self: Tensor) -> Any:
    return aten.mul.Tensor(self, aten.sigmoid.default(self))


def _relu6(self: Tensor) -> Any:
    return aten.hardtanh.default(self, 0.0, 6.0)


def _vector_norm(
    self: Tensor,
    ord: float = 2,
    dim: list[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Any:
    x = self if dtype is None else self.to(dtype)
    dims = list(range(x.dim())) if dim is None else dim
    if ord == 2:
        return aten.sqrt.default(aten.sum.dim_IntList(aten.mul.Tensor(x, x), dims, keepdim))
    size = aten.abs.default(x)
    if ord == 0:
        counted = aten.ne.Scalar(x, 0).to(x.dtype)
        return aten.sum.dim_IntList(counted, dims, keepdim)
    if math.isinf(ord):
        return (aten.amax if ord > 0 else aten.amin).default(size, dims, keepdim)
    if ord == 1:
        return aten.sum.dim_IntList(size, dims, keepdim)
    total = aten.sum.dim_IntList(aten.pow.Tensor_Scalar(size, ord), dims, keepdim)
    return aten.pow.Tensor_Scalar(total, 1.0 / ord)


def _sort(self: Tensor, dim: int = -1, descending: bool = False) -> Any:
    length = self.shape[dim] if self.dim() else 1
    return aten.topk.default(self, length, dim, descending, True)


def _exp2(self: Tensor) -> Any:
    return aten.pow.Scalar(2, self)


def _erfc(self: Tensor) -> Any:
    return aten.rsub.Scalar(aten.erf.default(self), 1)


def _hypot(self: Tensor, other: Tensor) -> Any:
    return aten.sqrt.default(self * self + other * other)


def _fmax(self: Tensor, other: Tensor) -> Any:
    most = aten.maximum.default(self, other)
    most = aten.where.self(aten.isnan.default(self), other, most)
    return aten.where.self(aten.isnan.default(other), self, most)


def _fmin(self: Tensor, other: Tensor) -> Any:
    least = aten.minimum.default(self, other)
    least = aten.where.self(aten.isnan.default(self), other, least)
    return aten.where.self(aten.isnan.default(other), self, least)


def _bucketize(
    self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    values = aten.unsqueeze.default(self, -1)
    passed = aten.ge.Tensor(values, boundaries) if right else aten.gt.Tensor(values, boundaries)
    count = aten.sum.dim_IntList(passed, [-1])
    return count.to(torch.int32) if out_int32 else count


OURS: dict[OpOverload, Callable[..., Any]] = {
    aten.hardsigmoid.default: _hardsigmoid,
    aten.hardswish.default: _hardswish,
    aten.silu.default: _silu,
    aten.relu6.default: _relu6,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.sort.default: _sort,
    aten.exp2.default: _exp2,
    aten.erfc.default: _erfc,
    aten.special_erfc.default: _erfc,
    aten.hypot.default: _hypot,
    aten.fmax.default: _fmax,
    aten.fmin.default: _fmin,
    aten.bucketize.Tensor: _bucketize,
    aten.addmv.default: torch_decompositions.addmv,
    aten.adaptive_max_pool2d.default: torch_decompositions.adaptive_max_pool2d,
    aten.dist.default: torch_decompositions.dist,
    aten.upsample_bicubic2d.default: torch_decompositions.upsample_bicubic2d_default,
    aten.upsample_bilinear2d.default: torch_decompositions.upsample_bilinear2d,
}
