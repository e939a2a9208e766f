# SPDX-License-Identifier: BSD-3-Clause
"""ATen to Core ATen: torch's decompositions, but for the operators that have better kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram, default_decompositions

__all__ = ["KEPT", "decompose", "decompositions"]

aten = torch.ops.aten

KEPT: tuple[OpOverload, ...] = (
    aten.linear.default,
    aten.scaled_dot_product_attention.default,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.vec,
    aten.rsub.Scalar,
    aten.stack.default,
    aten.split_with_sizes.default,
    aten.split.Tensor,
    aten.unbind.int,
    aten.glu.default,
    aten.pixel_shuffle.default,
    aten.pixel_unshuffle.default,
    aten.roll.default,
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
    aten.masked_fill.Scalar,
    aten.select_scatter.default,
    aten.tril.default,
    aten.logit.default,
)


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


OURS: dict[OpOverload, Callable[..., Any]] = {
    aten.hardsigmoid.default: _hardsigmoid,
    aten.hardswish.default: _hardswish,
    aten.silu.default: _silu,
    aten.relu6.default: _relu6,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.sort.default: _sort,
}


def decompositions(preserved: Iterable[OpOverload] = ()) -> dict[Any, Callable[..., Any]]:
    """Return the table from ATen to Core ATen without the operators that stay whole."""
    table: dict[Any, Callable[..., Any]] = default_decompositions()
    table.update(OURS)
    for op in (*KEPT, *preserved):
        table.pop(op, None)
    return table


def decompose(program: ExportedProgram, preserved: Iterable[OpOverload] = ()) -> ExportedProgram:
    """Return `program` in functional Core ATen; the given program stays as it is."""
    result: ExportedProgram = program.run_decompositions(decompositions(preserved))
    result._state_dict = dict(result.state_dict)
    result._constants = dict(result.constants)
    return result
