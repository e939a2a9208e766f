# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and tensors of rank 0 that the dtype of the operation cannot hold: eager converts them to
that dtype before it computes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from case import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, label
from harness import PLUGIN
from intercept import Intercept, out_like

aten = torch.ops.aten
TENSORS = (
    *(aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.floor_divide.default),
    *(aten.fmod.Tensor, aten.remainder.Tensor, aten.maximum.default, aten.minimum.default),
    *(aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor, aten.gt.Tensor),
    *(aten.ge.Tensor, aten.pow.Tensor_Tensor, aten.div.Tensor, aten.atan2.default),
    *(aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default),
    *(aten.clamp.Tensor,),
)
INTEGRAL_TENSORS = (
    *(aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor),
    *(aten.bitwise_left_shift.Tensor, aten.bitwise_right_shift.Tensor),
)
NUMBERS = (
    *(aten.add.Scalar, aten.sub.Scalar, aten.rsub.Scalar, aten.mul.Scalar, aten.fmod.Scalar),
    *(aten.remainder.Scalar, aten.eq.Scalar, aten.ne.Scalar, aten.lt.Scalar, aten.le.Scalar),
    *(aten.gt.Scalar, aten.ge.Scalar, aten.div.Scalar, aten.pow.Tensor_Scalar),
)
INTEGRAL_NUMBERS = (
    *(aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar),
    *(aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor_Scalar),
)
INTEGERS = (-1, -2, -3, 9, 255, 257, 258, 300, 2**31, 2**31 + 3, 2**33 + 5, 2**63 - 1)
REALS = (1e5, -1e5, 3.07, 0.65, 65504.0, 2.0**24 + 1, 1e30, math.inf, math.nan)
MODES = ("floor", "trunc", None)


def narrow(dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        values = [1e-3, 1.0, -6e4, 2.5, -0.1, 3.5, 100.0, math.inf, math.nan]
    else:
        values = [1.0, 2.0, 100.0, 120.0, 7.0]
        values += [200.0] if dtype == U8 else [-1.0, -128.0]
    return torch.tensor(values, dtype=F64).to(dtype)


def check(op: Any, *args: Any, **named: Any) -> None:
    try:
        op(*args, **named)
    except (RuntimeError, ValueError):
        return
    with Intercept(0.0) as intercept:
        op(*args, **named)
    assert len(intercept.reached) == 1


def rounds(op: Any) -> bool:
    return op in (aten.atan2.default, aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar)


@pytest.mark.parametrize("dtype", [U8, I8, I16, I32], ids=label)
@pytest.mark.parametrize("op", [*TENSORS, *INTEGRAL_TENSORS], ids=str)
def test_wider_integer_of_rank_0(op: Any, dtype: torch.dtype) -> None:
    for value in INTEGERS if not rounds(op) else ():
        check(op, narrow(dtype), torch.tensor(value, dtype=I64))
        check(op, torch.tensor(value, dtype=I64), narrow(dtype))


@pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=label)
@pytest.mark.parametrize("op", TENSORS, ids=str)
def test_wider_real_of_rank_0(op: Any, dtype: torch.dtype) -> None:
    for value in REALS if not rounds(op) else ():
        for wider in (F32, F64):
            check(op, narrow(dtype), torch.tensor(value, dtype=wider))
            check(op, torch.tensor(value, dtype=wider), narrow(dtype))


@pytest.mark.parametrize("dtype", [U8, I8, I16, I32], ids=label)
@pytest.mark.parametrize("op", [*NUMBERS, *INTEGRAL_NUMBERS], ids=str)
def test_integer(op: Any, dtype: torch.dtype) -> None:
    for value in INTEGERS:
        check(op, narrow(dtype), value)


@pytest.mark.parametrize("dtype", [F16, BF16, F32], ids=label)
@pytest.mark.parametrize("op", NUMBERS, ids=str)
def test_real(op: Any, dtype: torch.dtype) -> None:
    for value in (*REALS, *INTEGERS) if not rounds(op) else ():
        check(op, narrow(dtype), value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [U8, I8, I16, F16, BF16, F32], ids=label)
def test_division_by_mode(dtype: torch.dtype, mode: str | None) -> None:
    for value in (*INTEGERS, *REALS) if dtype.is_floating_point else INTEGERS:
        check(aten.div.Scalar_mode, narrow(dtype), value, rounding_mode=mode)
        check(aten.div.Tensor_mode, narrow(dtype), torch.tensor(value), rounding_mode=mode)
        check(aten.div.Tensor_mode, torch.tensor(value), narrow(dtype), rounding_mode=mode)


@pytest.mark.parametrize("alpha", [2, 3, 300])
@pytest.mark.parametrize("dtype", [F16, BF16], ids=label)
def test_a_scaled_operand_is_rounded_with_the_sum(dtype: torch.dtype, alpha: int) -> None:
    """As in eager's vector loop, which takes 64 elements at once."""
    x = torch.arange(-64, 64, dtype=F32).div(7).to(dtype)
    for op in (aten.add.Tensor, aten.sub.Tensor):
        check(op, x, x.flip(0) * 0.37, alpha=alpha)
    check(aten.rsub.Scalar, x, 3.07, alpha)


def test_alpha_of_bools() -> None:
    a, b = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    for alpha in (-1, 2, 0, True):
        check(aten.add.Tensor, a, b, alpha=alpha)
    assert a.dtype == BOOL


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, I64], ids=label)
@pytest.mark.parametrize(
    "bounds", [(math.nan, 1.0), (-1.0, math.nan), (math.nan, None), (None, math.nan)], ids=str
)
def test_a_bound_that_is_no_number(dtype: torch.dtype, bounds: tuple[float, float]) -> None:
    x = torch.arange(-9, 9).to(dtype)
    check(aten.clamp.default, x, *bounds)
    expected = aten.clamp.default(x, *bounds)
    (actual,) = PLUGIN.call("aten::clamp.out", x, *bounds, out_like(expected))
    assert bool(actual.isnan().all())
    if None not in bounds and dtype.is_floating_point:
        check(aten.hardtanh.default, x, *bounds)


@pytest.mark.parametrize("dtype", [BOOL, I8, I32, F16, BF16], ids=label)
def test_elements_take_the_asked_dtype_before_they_are_folded(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.5, 300.75, 1e-30], [2.0**40, -1.25, 70000.0]], dtype=F64)
    check(aten.sum.dim_IntList, x, [1], dtype=dtype)
    if dtype in (BOOL, I8, I32):
        check(aten.prod.dim_int, x, 1, dtype=dtype)
        check(aten.prod.default, x, dtype=dtype)
    else:
        check(aten.mean.dim, x, [1], dtype=dtype)


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=label)
def test_the_largest_unsigned_integers_are_not_negative(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 9, 2**64 - 9, 2**63], dtype=torch.uint64)
    check(aten._to_copy.default, x, dtype=dtype)
