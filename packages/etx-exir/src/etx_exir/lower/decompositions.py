# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions where torch has none or a longer one, used where a target has no kernel.

Each of them is written with operators that have kernels, in the fewest instructions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decompositions as torch_decompositions
from torch._ops import OpOverload

from etx_exir.ir.ops import TABLE
from etx_exir.ir.own_ops import POINTWISE
from etx_exir.ir.recurrent import STEPS
from etx_exir.ir.recurrent_nets import NETS
from etx_exir.lower.decompose_complex import COMPLEX
from etx_exir.lower.decompose_floats import FLOATS
from etx_exir.lower.decompose_order import ORDER
from etx_exir.lower.decompose_places import PLACES
from etx_exir.lower.decompose_random import RANDOM
from etx_exir.lower.decompose_sampling import BYTES, GRID, OUTPUT_SIZE
from etx_exir.lower.decompose_scans import SCANS
from etx_exir.lower.decompose_special import SPECIAL
from etx_exir.lower.decompose_unique import UNIQUE
from etx_exir.lower.decompose_windows import WINDOWS
from etx_exir.lower.decompose_zeta import ZETA
from etx_exir.lower.in_float32 import NARROW, in_float32

aten = torch.ops.aten

ERFC = (
    -0.6717940840567213,
    0.6726432239778204,
    0.04734330684911401,
    -0.04689561024729135,
    -0.009872689661261511,
    0.008824939032094137,
    0.0017589382239087974,
    -0.00234581897983641,
    -0.00014628420146902592,
    0.0006737276124420571,
    -9.356476581941274e-05,
    -0.00017452469351210675,
    7.093581910208779e-05,
    3.237850647375999e-05,
    -2.9429434038905636e-05,
    -1.010958876266044e-06,
    7.88967329262955e-06,
    -1.655053267015326e-06,
    -1.0822213974710155e-06,
    4.128645213262901e-07,
    1.714739676280123e-09,
)
"""Of p in erfc(x) = t exp(-x^2 + p(2t - 1)), t = 1 / (1 + x / 2), by interpolation."""

SIMPLER: frozenset[OpOverload] = frozenset(
    {
        *(view for row in TABLE for view in (row.views if row.is_decomposed else row.views[1:])),
        aten.arange.default,
        aten.arange.start,
        aten.fill.Scalar,
        aten.fill.Tensor,
        aten.floor_divide.default,
        aten.hardsigmoid.default,
        aten.hardswish.default,
        aten.ones.default,
        aten.silu.default,
        aten.sort.default,
        aten.sum.default,
        aten.var.default,
        aten.var.dim,
        aten.zeros.default,
    }
)
"""Decomposed although there are kernels: passes and ExecuTorch know the parts, which are as fast,
or which `fuse_activations` puts together again."""


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
    x = aten.abs.default(x) if x.is_complex() else x
    dims = list(range(x.dim())) if dim is None else dim
    if math.isinf(ord):
        size = aten.abs.default(x)
        return (aten.amax if ord > 0 else aten.amin).default(size, dims, keepdim)
    if ord == 0:
        counted = aten.ne.Scalar(x, 0).to(x.dtype)
        return aten.sum.dim_IntList(counted, dims, keepdim)
    return in_float32(_sum_of_powers)(x, ord, dims, keepdim)


def _sum_of_powers(x: Tensor, ord: float, dims: list[int], keepdim: bool) -> Any:
    if ord == 2:
        return aten.sqrt.default(aten.sum.dim_IntList(aten.mul.Tensor(x, x), dims, keepdim))
    size = aten.abs.default(x)
    if ord == 1:
        return aten.sum.dim_IntList(size, dims, keepdim)
    total = aten.sum.dim_IntList(aten.pow.Tensor_Scalar(size, ord), dims, keepdim)
    return aten.pow.Tensor_Scalar(total, 1.0 / ord)


def _sort(self: Tensor, dim: int = -1, descending: bool = False) -> Any:
    length = self.shape[dim] if self.dim() else 1
    return aten.topk.default(self, length, dim, descending, True)


def _as_float(self: Tensor) -> Tensor:
    real = self.is_floating_point() or self.is_complex()
    return self if real else self.to(torch.float32)


def _exp2(self: Tensor) -> Any:
    return aten.pow.Scalar(2, _as_float(self))


def _erfc(self: Tensor) -> Any:
    """Return t exp(-x^2 + p(2t - 1)) with t = 1 / (1 + |x| / 2), whose relative error is small
    where that of 1 - erf(x) is not; computed in float64."""
    given = _as_float(self)
    x = given.to(torch.float64)
    size = aten.abs.default(x)
    t = aten.reciprocal.default(aten.add.Scalar(aten.mul.Scalar(size, 0.5), 1.0))
    u = aten.sub.Scalar(aten.mul.Scalar(t, 2.0), 1.0)
    power = aten.mul.Scalar(u, ERFC[-1])
    for coefficient in ERFC[-2:0:-1]:
        power = aten.mul.Tensor(aten.add.Scalar(power, coefficient), u)
    power = aten.sub.Tensor(aten.add.Scalar(power, ERFC[0]), aten.mul.Tensor(x, x))
    tail = aten.mul.Tensor(t, aten.exp.default(power))
    mirrored = aten.rsub.Scalar(tail, 2.0)
    return aten.where.self(aten.lt.Scalar(x, 0.0), mirrored, tail).to(given.dtype)


def _linspace(
    start: Any,
    end: Any,
    steps: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Any:
    """Compute integers as eager does: from integer ends, in float64, from the end that is near."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return torch._refs.linspace(start, end, steps, dtype=dtype, device=device)
    first, last = (_whole_number(x, dtype) for x in (start, end))
    step = (last - first) / max(steps - 1, 1)
    place = torch.arange(steps, dtype=torch.float64, device=device)
    up, down = first + step * place, last - step * (steps - 1 - place)
    return torch.where(place < max(steps // 2, 1), up, down).to(dtype)


def _whole_number(x: Any, dtype: torch.dtype) -> Any:
    return x.to(dtype).to(torch.float64) if isinstance(x, Tensor) else float(int(x))


def _shift(op: OpOverload) -> Callable[..., Any]:
    """Return what `x << y` and `x >> y` are of integers; of floats eager scales them."""

    def shift(self: Tensor, other: Any) -> Any:
        return NotImplemented if self.is_floating_point() else op(self, other)

    return shift


def _shift_number(op: OpOverload) -> Callable[..., Any]:
    def shift(self: int, other: Tensor) -> Any:
        return op(torch.full_like(other, self), other)

    return shift


def _hypot(self: Tensor, other: Tensor) -> Any:
    """Return sqrt(a^2 + b^2) in a wider type; in float64, m sqrt(1 + (n / m)^2), m the larger."""
    dtype = torch.result_type(self, other)
    wider = torch.float32 if dtype == torch.float16 else torch.float64
    a, b = (aten.abs.default(x.to(wider)) for x in (self, other))
    if dtype != torch.float64:
        squares = aten.add.Tensor(aten.mul.Tensor(a, a), aten.mul.Tensor(b, b))
        length = aten.sqrt.default(squares)
    else:
        most, least = aten.maximum.default(a, b), aten.minimum.default(a, b)
        whole = aten.where.self(aten.eq.Scalar(most, 0.0), aten.add.Scalar(most, 1.0), most)
        part = aten.div.Tensor(least, whole)
        square = aten.add.Scalar(aten.mul.Tensor(part, part), 1.0)
        length = aten.mul.Tensor(most, aten.sqrt.default(square))
    infinite = aten.logical_or.default(aten.isinf.default(a), aten.isinf.default(b))
    return aten.masked_fill.Scalar(length, infinite, math.inf).to(dtype)


def _fmax(self: Tensor, other: Tensor) -> Any:
    most = aten.maximum.default(self, other)
    most = aten.where.self(aten.isnan.default(self), other, most)
    return aten.where.self(aten.isnan.default(other), self, most)


def _fmin(self: Tensor, other: Tensor) -> Any:
    least = aten.minimum.default(self, other)
    least = aten.where.self(aten.isnan.default(self), other, least)
    return aten.where.self(aten.isnan.default(other), self, least)


def _lerp(self: Tensor, end: Tensor, weight: Any) -> Any:
    """Return what lies between both, from the nearer of them on, as eager does."""
    way = aten.sub.Tensor(end, self)
    if abs(weight) < 0.5:
        return aten.add.Tensor(self, way, alpha=weight)
    return aten.sub.Tensor(end, way, alpha=1 - weight)


def _nan_to_num(
    self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Return finite numbers; infinities become the largest by bounds alone."""
    if not self.is_floating_point():
        return self.clone()
    limits = torch.finfo(self.dtype)
    found = self
    for given, infinite in ((posinf, math.inf), (neginf, -math.inf)):
        if given is not None:
            is_infinite = aten.eq.Scalar(self, infinite)
            found = aten.where.self(is_infinite, self.new_full((), given), found)
    if posinf is None or neginf is None:
        least = limits.min if neginf is None else None
        found = aten.clamp.default(found, least, limits.max if posinf is None else None)
    return aten.where.self(aten.isnan.default(self), self.new_full((), nan or 0.0), found)


def _resized(
    self: Tensor, sizes: Sequence[int], align_corners: bool, scales: Sequence[float | None]
) -> Tensor:
    """Interpolate linearly as eager does: of float16 and bfloat16 the weights have that dtype, but
    sums are float32; a scale does not count where the size stays."""
    dtype = torch.float32 if self.dtype in NARROW else self.dtype
    y = self.to(dtype)
    for dim in range(self.dim() - 1, 1, -1):
        size, out, scale = self.shape[dim], sizes[dim - 2], scales[dim - 2]
        place = torch.arange(out, dtype=dtype, device=self.device)
        if align_corners:
            place = place * ((size - 1) / (out - 1) if out > 1 else 0.0)
        elif size != out:
            step = size / out if scale is None or scale <= 0 else 1.0 / scale
            place = ((place + 0.5) * step - 0.5).clamp(min=0.0)
        first = place.to(torch.int64).clamp(max=size - 1)
        second = (first + 1).clamp(max=size - 1)
        right = (place - first).clamp(0.0, 1.0).to(self.dtype).to(dtype)
        left = (1.0 - right).to(self.dtype).to(dtype)
        rest = [-1, *([1] * (self.dim() - 1 - dim))]
        before, after = y.index_select(dim, first), y.index_select(dim, second)
        y = before * left.view(rest) + after * right.view(rest)
    return y.to(self.dtype)


def _upsample_linear(
    self: Tensor, sizes: list[int], align_corners: bool, *scales: float | None
) -> Any:
    return _resized(self, sizes, align_corners, scales or (None,) * len(sizes))


def _upsample_linear_vec(
    self: Tensor,
    sizes: list[int] | None,
    align_corners: bool,
    scales: list[float] | None,
) -> Any:
    found = OUTPUT_SIZE(self.size(), sizes, scales)
    return _resized(self, found, align_corners, scales or (None,) * len(found))


def _take(self: Tensor, index: Tensor) -> Any:
    return aten.index.Tensor(self.reshape(-1), [index])


def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return torch.mm(self.to(torch.int32), mat2.to(torch.int32))


def _addbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Any:
    """Return one product whose sums run over the batches too."""
    wide = batch1.transpose(0, 1).flatten(1)
    return aten.addmm.default(self, wide, batch2.flatten(0, 1), beta=beta, alpha=alpha)


def _trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Any:
    """Return sums of products; of a bilinear form by two products of matrices."""
    if (expand1, expand2, expand3, sumdim) == ([1, 3], [0], [1, 2], [2, 3]):
        features, first, second = i2.shape
        rows = i2.permute(1, 0, 2).reshape(first, features * second)
        forms = torch.mm(i1, rows).reshape(i1.shape[0], features, second)
        return torch.bmm(forms, i3.unsqueeze(-1)).squeeze(-1)
    for dims, place in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for dim in sorted(dims):
            i1, i2, i3 = (x.unsqueeze(dim) if i == place else x for i, x in enumerate((i1, i2, i3)))
    return aten.sum.dim_IntList(aten.mul.Tensor(aten.mul.Tensor(i1, i2), i3), sumdim)


BATCH_NORM: Callable[..., Any] = torch_decompositions._native_batch_norm_legit_functional
UPDATED_BATCH_NORM: Callable[..., Any] = torch_decompositions._batch_norm_with_update_functional

OURS: dict[OpOverload, Callable[..., Any]] = {
    aten.hardsigmoid.default: _hardsigmoid,
    aten.hardswish.default: _hardswish,
    aten.silu.default: _silu,
    aten.relu6.default: _relu6,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.sort.default: _sort,
    aten.exp2.default: _exp2,
    aten.linspace.default: _linspace,
    aten.linspace.Tensor_Tensor: _linspace,
    aten.linspace.Tensor_Scalar: _linspace,
    aten.linspace.Scalar_Tensor: _linspace,
    aten.erfc.default: _erfc,
    aten.special_erfc.default: _erfc,
    aten.__lshift__.Scalar: _shift(aten.bitwise_left_shift.Tensor_Scalar),
    aten.__lshift__.Tensor: _shift(aten.bitwise_left_shift.Tensor),
    aten.__rshift__.Scalar: _shift(aten.bitwise_right_shift.Tensor_Scalar),
    aten.__rshift__.Tensor: _shift(aten.bitwise_right_shift.Tensor),
    aten.bitwise_left_shift.Scalar_Tensor: _shift_number(aten.bitwise_left_shift.Tensor),
    aten.bitwise_right_shift.Scalar_Tensor: _shift_number(aten.bitwise_right_shift.Tensor),
    aten.hypot.default: _hypot,
    aten.fmax.default: _fmax,
    aten.fmin.default: _fmin,
    aten.lerp.Scalar: in_float32(_lerp),
    aten.nan_to_num.default: _nan_to_num,
    aten.take.default: _take,
    aten._int_mm.default: _int_mm,
    aten._native_batch_norm_legit_functional.default: BATCH_NORM,
    aten._batch_norm_with_update_functional.default: UPDATED_BATCH_NORM,
    torch.ops.prims.convert_element_type.default: Tensor.to,
    aten.addbmm.default: _addbmm,
    aten._trilinear.default: _trilinear,
    aten.addmv.default: torch_decompositions.addmv,
    aten.dist.default: torch_decompositions.dist,
    aten.upsample_bilinear2d.default: in_float32(torch_decompositions.upsample_bilinear2d),
    aten.upsample_linear1d.default: _upsample_linear,
    aten.upsample_linear1d.vec: _upsample_linear_vec,
    aten.upsample_trilinear3d.default: _upsample_linear,
    aten.upsample_trilinear3d.vec: _upsample_linear_vec,
    **BYTES,
    **SCANS,
    **WINDOWS,
    **SPECIAL,
    **ZETA,
    **FLOATS,
    **PLACES,
    **ORDER,
    **RANDOM,
    **UNIQUE,
    **GRID,
    **COMPLEX,
    **STEPS,
    **POINTWISE,
    **NETS,
}
