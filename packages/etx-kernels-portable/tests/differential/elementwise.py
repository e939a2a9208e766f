# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of operators that work element by element."""

from __future__ import annotations

from typing import Any

import torch

from differential.registry import draws
from differential.values import COMMON, FLOATING, Draw

UNARY = tuple(
    """
    abs ceil floor neg relu round sign trunc acos acosh asin asinh atan atanh cos cosh erf erfc
    exp expm1 hardsigmoid hardswish log log10 log1p log2 reciprocal rsqrt sigmoid silu sin sinh
    sqrt tan tanh isinf isnan logical_not bitwise_not alias_copy detach_copy lift_fresh_copy
    _conj_physical
    """.split()  # noqa: SIM905
)
BINARY = tuple(
    """
    div.out floor_divide.out fmod.Tensor_out remainder.Tensor_out mul.out maximum.out minimum.out
    hypot.out atan2.out bitwise_and.Tensor_out bitwise_or.Tensor_out bitwise_xor.Tensor_out
    bitwise_left_shift.Tensor_out bitwise_right_shift.Tensor_out eq.Tensor_out ne.Tensor_out
    lt.Tensor_out le.Tensor_out gt.Tensor_out ge.Tensor_out logical_and.out logical_or.out
    logical_xor.out pow.Tensor_Tensor_out
    """.split()  # noqa: SIM905
)
NUMBER = tuple(
    """
    fmod.Scalar_out remainder.Scalar_out mul.Scalar_out div.Scalar_out bitwise_and.Scalar_out
    bitwise_or.Scalar_out bitwise_xor.Scalar_out bitwise_left_shift.Tensor_Scalar_out
    bitwise_right_shift.Tensor_Scalar_out eq.Scalar_out ne.Scalar_out lt.Scalar_out le.Scalar_out
    gt.Scalar_out ge.Scalar_out
    """.split()  # noqa: SIM905
)
MODES = (None, "floor", "trunc", "floor", "trunc", "down")


@draws(*(f"aten::{op}.out" for op in UNARY))
def unary(d: Draw) -> list[Any]:
    return [d.tensor(d.shape())]


def pair(d: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors that broadcast, of one dtype or two."""
    shape = d.shape()
    dtype = d.dtype()
    other = dtype if d.chance(0.45) else d.dtype()
    a, b = d.tensor(shape, dtype), d.tensor(d.broadcastable(shape), other)
    return (b, a) if d.chance(0.3) else (a, b)


@draws(*(f"aten::{op}" for op in BINARY))
def binary(d: Draw) -> list[Any]:
    return list(pair(d))


@draws(*(f"aten::{op}" for op in NUMBER))
def with_number(d: Draw) -> list[Any]:
    dtype = d.dtype()
    return [d.tensor(d.shape(), dtype), d.number_for(dtype)]


@draws("aten::pow.Tensor_Scalar_out")
def power(d: Draw) -> list[Any]:
    dtype = d.dtype()
    usual = d.one(2, 3, 0, 1, 0.5, -1, -2, -0.5, 2.0, 3.0, 1.5, 9)
    return [d.tensor(d.shape(), dtype), usual if d.chance(0.6) else d.number_for(dtype)]


@draws("aten::pow.Scalar_out")
def power_of_number(d: Draw) -> list[Any]:
    dtype = d.dtype()
    return [d.number_for(dtype), d.tensor(d.shape(), dtype)]


def alpha(d: Draw) -> Any:
    return d.one(1, 1, 1, 2, -1, 3, 0.5, 300, True, 0)


@draws("aten::add.out", "aten::sub.out")
def sum_of_tensors(d: Draw) -> list[Any]:
    return [*pair(d), alpha(d)]


@draws("aten::add.Scalar_out", "aten::sub.Scalar_out", "aten::rsub.Scalar_out")
def sum_with_number(d: Draw) -> list[Any]:
    return [*with_number(d), alpha(d)]


@draws("aten::div.out_mode")
def divided(d: Draw) -> list[Any]:
    return [*pair(d), d.one(*MODES)]


@draws("aten::div.Scalar_mode_out")
def divided_by_number(d: Draw) -> list[Any]:
    return [*with_number(d), d.one(*MODES)]


@draws("aten::clamp.out")
def clamped(d: Draw) -> list[Any]:
    dtype = d.dtype()
    low, high = d.number_for(dtype), d.number_for(dtype)
    return [d.tensor(d.shape(), dtype), *d.one((low, high), (low, None), (None, high))]


@draws("aten::hardtanh.out")
def hardtanh(d: Draw) -> list[Any]:
    dtype = d.dtype()
    bounds = sorted((d.number_for(dtype), d.number_for(dtype)))
    return [d.tensor(d.shape(), dtype), *bounds]


@draws("aten::clamp.Tensor_out")
def clamped_by_tensors(d: Draw) -> list[Any]:
    shape, dtype = d.shape(), d.dtype()

    def bound() -> torch.Tensor:
        return d.tensor(d.broadcastable(shape), dtype if d.chance(0.5) else d.dtype())

    low, high = bound(), bound()
    return [d.tensor(shape, dtype), *d.one((low, high), (low, None), (None, high))]


@draws("aten::leaky_relu.out")
def leaky_relu(d: Draw) -> list[Any]:
    return [d.tensor(d.shape()), d.one(0.01, -0.5, 0, 2, d.number())]


@draws("aten::elu.out")
def elu(d: Draw) -> list[Any]:
    return [d.tensor(d.shape()), d.one(1, 1.67, 0.3), d.one(1, 1.05), d.one(1, 0.5)]


@draws("aten::logit.out")
def logit(d: Draw) -> list[Any]:
    x = d.tensor(d.shape())
    if x.dtype.is_floating_point and d.chance(0.6):
        x = x.abs().remainder(1.0)
    return [x, d.one(None, 1e-6, 0.1, 0.0, 0.7, -1.0)]


@draws("aten::gelu.out")
def gelu(d: Draw) -> list[Any]:
    return [d.tensor(d.shape()), d.one("none", "tanh")]


@draws("aten::where.self_out")
def where(d: Draw) -> list[Any]:
    a, b = pair(d)
    mask = d.tensor(d.broadcastable(a.shape), d.one(torch.bool, torch.bool, torch.uint8))
    return [mask, a, b]


@draws("aten::masked_fill.Scalar_out")
def masked_fill(d: Draw) -> list[Any]:
    shape, dtype = d.shape(), d.dtype()
    mask = d.tensor(d.broadcastable(shape), torch.bool)
    return [d.tensor(shape, dtype), mask, d.number_for(dtype)]


@draws("aten::glu.out")
def glu(d: Draw) -> list[Any]:
    shape = d.shape(low=1)
    dim = d.int(0, len(shape) - 1)
    shape[dim] *= 1 if d.chance(0.1) else 2
    return [d.tensor(shape), dim - len(shape) if d.chance(0.3) else dim]


@draws("aten::_softmax.out", "aten::_log_softmax.out")
def softmax(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.dtype(*FLOATING))
    return [x, d.dim(x.dim()), d.chance(0.02)]


@draws("aten::copy.out", "aten::copy_")
def copy(d: Draw) -> list[Any]:
    shape = d.shape()
    source = [size if d.chance(0.8) else 1 for size in shape[d.int(0, 1) if shape else 0 :]]
    return [d.tensor(shape, d.dtype(*COMMON)), d.tensor(source, d.dtype(*COMMON)), False]


@draws("aten::fill.Scalar_out")
def fill(d: Draw) -> list[Any]:
    dtype = d.dtype()
    return [d.tensor(d.shape(), dtype), d.number_for(dtype)]


@draws("aten::fill.Tensor_out")
def fill_with_tensor(d: Draw) -> list[Any]:
    return [d.tensor(d.shape()), d.tensor([])]


@draws("aten::scalar_tensor.out")
def scalar_tensor(d: Draw) -> list[Any]:
    return [d.number()]


@draws("aten::full.out")
def full(d: Draw) -> list[Any]:
    return [d.shape(), d.number()]


@draws("aten::full_like.out")
def full_like(d: Draw) -> list[Any]:
    dtype = d.dtype()
    return [d.tensor(d.shape(), dtype), d.number_for(dtype), None]


@draws("aten::zeros.out", "aten::ones.out")
def filled(d: Draw) -> list[Any]:
    return [d.shape()]


@draws("aten::arange.out")
def arange(d: Draw) -> list[Any]:
    return [d.one(0, 1, 5, 4.5, 17, -1, 0.3)]


@draws("aten::arange.start_out")
def arange_from(d: Draw) -> list[Any]:
    return [d.one(0, 1, -3, 2.5), d.one(0, 7, 4.5, 17, -9), d.one(1, 2, -1, 0.5, -0.7, 0)]


@draws("aten::clone.out")
def clone(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(), d.any_dtype()), None]


@draws("aten::tril.out")
def tril(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(low=2), d.any_dtype()), d.int(-4, 4)]
