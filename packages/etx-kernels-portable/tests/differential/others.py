# SPDX-License-Identifier: BSD-3-Clause
"""Kernels without an overload in ATen: primitive and quantized operators, conversions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (registers the operators)

from differential.registry import REFERENCES, draws
from differential.values import FLOATING, ODD_INTS, Draw

PRIM = "executorch_prim::"
RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int16: (-32768, 32767)}


def as_number(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Of an integer and a real: a real, whichever is the result."""

    def apply(a: Any, b: Any) -> Any:
        result = function(a, b)
        return float(result) if float in (type(a), type(b)) else result

    return apply


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add.Scalar": operator.add,
    "sub.Scalar": operator.sub,
    "mul.Scalar": operator.mul,
    "floordiv.Scalar": operator.floordiv,
    "truediv.Scalar": operator.truediv,
    "mod.Scalar": operator.mod,
    "eq.Scalar": operator.eq,
    "gt.Scalar": operator.gt,
    "lt.Scalar": operator.lt,
    "ge.Scalar": operator.ge,
    "le.Scalar": operator.le,
    "sym_max.Scalar": as_number(max),
    "sym_min.Scalar": as_number(min),
}
WHOLE: dict[str, Callable[..., Any]] = {
    "floordiv.int": operator.floordiv,
    "mod.int": operator.mod,
}
SINGLE: dict[str, Callable[..., Any]] = {
    "neg.Scalar": operator.neg,
    "ceil.Scalar": math.ceil,
    "round.Scalar": round,
    "trunc.Scalar": math.trunc,
    "sym_float.Scalar": float,
    "sym_int.Scalar": int,
}


def as_int64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse integers beyond int64, which a program cannot hold."""

    def apply(*args: Any) -> Any:
        result = function(*args)
        if type(result) is int and not -(2**63) <= result < 2**63:
            raise OverflowError(result)
        return result

    return apply


for _name, _function in {**ARITHMETIC, **WHOLE, **SINGLE}.items():
    REFERENCES[PRIM + _name] = as_int64(_function)
REFERENCES[PRIM + "sym_not.Scalar"] = operator.not_
REFERENCES[PRIM + "sym_ite.Scalar"] = lambda which, a, b: a if which else b


def number(d: Draw) -> float:
    if d.chance(0.5):
        return d.int(-9, 9) if d.chance(0.7) else d.one(*ODD_INTS)
    return d.one(0.5, -2.5, 1.5, 7.0, -0.0, 3.25, 1e18, -7.75)


@draws(*(PRIM + name for name in ARITHMETIC))
def arithmetic(d: Draw) -> list[Any]:
    return [number(d), number(d)]


@draws(*(PRIM + name for name in WHOLE))
def whole(d: Draw) -> list[Any]:
    return [d.one(*ODD_INTS) if d.chance(0.4) else d.int(-9, 9), d.int(-3, 4)]


@draws(*(PRIM + name for name in SINGLE))
def single(d: Draw) -> list[Any]:
    return [number(d)]


@draws(PRIM + "sym_not.Scalar")
def negation(d: Draw) -> list[Any]:
    return [d.chance(0.5)]


@draws(PRIM + "sym_ite.Scalar")
def choice(d: Draw) -> list[Any]:
    return [d.chance(0.5), number(d), number(d)]


def in_order(x: torch.Tensor, order: list[int] | None) -> torch.Tensor:
    """The same elements, laid out in this order of dimensions."""
    order = list(range(x.dim())) if order is None else order
    inverse = [order.index(i) for i in range(x.dim())]
    return x.permute(order).contiguous().permute(inverse) if x.dim() else x.clone()


REFERENCES["dim_order_ops::_to_dim_order_copy.out"] = lambda x, _, order: in_order(x, order)
REFERENCES["dim_order_ops::_clone_dim_order.out"] = lambda x, _, order: in_order(x, order)
REFERENCES["et_copy::_h2d_copy.out"] = torch.clone
REFERENCES["et_copy::_d2h_copy.out"] = torch.clone


@draws("dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out")
def dim_order_copy(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(), d.any_dtype())
    orders = [list(range(x.dim()))] + ([[0, 2, 3, 1]] if x.dim() == 4 else [])
    return [x, False, d.one(*orders)]


@draws("et_copy::_h2d_copy.out", "et_copy::_d2h_copy.out")
def device_copy(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(), d.any_dtype()).contiguous()]


@draws("aten::_to_copy.out")
def to_copy(d: Draw) -> list[Any]:
    return [d.tensor(d.shape(), d.any_dtype()), False, None]


def quantized(d: Draw) -> tuple[torch.dtype, int, int]:
    dtype = d.one(*RANGES)
    low, high = RANGES[dtype]
    return (dtype, low, high) if d.chance(0.8) else (dtype, low + 3, high - 5)


def scale(d: Draw) -> float:
    return d.one(0.1, 0.37, 1.0, 2.5, 0.004)


@draws("quantized_decomposed::quantize_per_tensor.out")
def quantize(d: Draw) -> list[Any]:
    dtype, low, high = quantized(d)
    return [d.tensor(d.shape(), d.one(*FLOATING)), scale(d), d.int(0, 9), low, high, dtype]


@draws("quantized_decomposed::quantize_per_tensor.Tensor_out")
def quantize_tensor(d: Draw) -> list[Any]:
    x, step, zero, *rest = quantize(d)
    return [x, torch.tensor([step], dtype=torch.float32), torch.tensor([zero]), *rest]


@draws("quantized_decomposed::dequantize_per_tensor.out")
def dequantize(d: Draw) -> list[Any]:
    dtype, low, high = quantized(d)
    to = d.one(None, None, *FLOATING)
    return [d.tensor(d.shape(), dtype), scale(d), d.int(0, 9), low, high, dtype, to]


@draws("quantized_decomposed::dequantize_per_tensor.Tensor_out")
def dequantize_tensor(d: Draw) -> list[Any]:
    x, step, zero, *rest = dequantize(d)
    return [x, torch.tensor([step], dtype=torch.float32), torch.tensor([zero]), *rest]


@draws("quantized_decomposed::choose_qparams.Tensor_out")
def choose_for_tensor(d: Draw) -> list[Any]:
    low, high = RANGES[torch.int8]
    return [d.tensor([d.int(1, 9), d.int(1, 9)], torch.float32), low, high, 1e-5, torch.int8]


def channels(d: Draw, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    scales = torch.rand(size, generator=d.generator) + 0.1
    return scales, torch.randint(0, 9, (size,), generator=d.generator)


@draws("quantized_decomposed::quantize_per_channel.out")
def quantize_channels(d: Draw) -> list[Any]:
    x = d.tensor(d.shape(low=1), torch.float32)
    axis = d.int(0, x.dim() - 1)
    dtype, low, high = quantized(d)
    return [x, *channels(d, x.shape[axis]), axis, low, high, dtype]


@draws("quantized_decomposed::dequantize_per_channel.out")
def dequantize_channels(d: Draw) -> list[Any]:
    dtype, low, high = quantized(d)
    x = d.tensor(d.shape(low=1), dtype)
    axis = d.int(0, x.dim() - 1)
    scales, zeros = channels(d, x.shape[axis])
    return [x, scales, d.one(zeros, None), axis, low, high, dtype, d.one(None, torch.float32)]


def tokens(d: Draw, dtype: torch.dtype) -> torch.Tensor:
    return d.tensor([*d.shape(high=3), d.int(1, 20)], dtype)


@draws("quantized_decomposed::choose_qparams_per_token_asymmetric.out")
def choose(d: Draw) -> list[Any]:
    return [tokens(d, d.one(*FLOATING)), torch.int8]


def per_token(d: Draw, x: torch.Tensor, zero_dtype: torch.dtype) -> list[torch.Tensor]:
    shape = [*x.shape[:-1], 1]
    scales = torch.rand(shape, generator=d.generator, dtype=torch.float64) + 0.1
    return [scales, torch.randint(-5, 5, shape, generator=d.generator).to(zero_dtype)]


@draws("quantized_decomposed::quantize_per_token.out")
def quantize_tokens(d: Draw) -> list[Any]:
    x = tokens(d, d.one(*FLOATING))
    return [x, *per_token(d, x, torch.int64), -128, 127, torch.int8]


@draws("quantized_decomposed::dequantize_per_token.out")
def dequantize_tokens(d: Draw) -> list[Any]:
    x = tokens(d, torch.int8)
    return [
        x,
        *per_token(d, x, torch.int64),
        -128,
        127,
        torch.int8,
        d.one(torch.float32, *FLOATING),
    ]
