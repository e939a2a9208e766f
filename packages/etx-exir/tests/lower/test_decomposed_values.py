# SPDX-License-Identifier: BSD-3-Clause
"""Each decomposition of ours computes what the operator does: every dtype, odd numbers too."""

import itertools
import math

import pytest
import torch
from etx_exir.ir.own_ops import POLYNOMIAL
from etx_exir.ir.recurrent import STEPS
from etx_exir.ir.recurrent_nets import NETS
from etx_exir.lower.decompose_complex import COMPLEX
from etx_exir.lower.decompose_floats import FLOATS
from etx_exir.lower.decompose_order import ORDER
from etx_exir.lower.decompose_places import PLACES
from etx_exir.lower.decompose_random import RANDOM
from etx_exir.lower.decompose_sampling import GRID
from etx_exir.lower.decompose_scans import SCANS
from etx_exir.lower.decompose_special import SPECIAL
from etx_exir.lower.decompose_unique import UNIQUE
from etx_exir.lower.decompose_windows import WINDOWS
from etx_exir.lower.decompose_zeta import ZETA
from etx_exir.lower.decompositions import OURS

aten = torch.ops.aten
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
ODD = (0.0, -0.0, 1.0, -1.0, 0.3, -3.0, 5.0, 9.0, -9.0, 300.0, -300.0, 6e4, math.inf, -math.inf)
HUGE = (1e30, -1e30, 3e-30, 1e38)
TOLERANCE = {
    torch.float32: 2e-6,
    torch.float64: 1e-12,
    torch.float16: 2e-3,
    torch.bfloat16: 1.6e-2,
}
POINTWISE = (
    *(aten.hardsigmoid.default, aten.hardswish.default, aten.silu.default, aten.relu6.default),
    *(aten.exp2.default, aten.erfc.default, aten.special_erfc.default),
    aten.nan_to_num.default,
)
PIECEWISE = (aten.hardsigmoid.default, aten.hardswish.default)
"""Straight between -3 and 3, computed from 1/6 x: of numbers up to 1."""
PAIRS = (aten.hypot.default, aten.fmax.default, aten.fmin.default)
SHIFTS = (
    *(aten.__lshift__.Scalar, aten.__lshift__.Tensor, aten.bitwise_left_shift.Scalar_Tensor),
    *(aten.__rshift__.Scalar, aten.__rshift__.Tensor, aten.bitwise_right_shift.Scalar_Tensor),
)
LINES = (
    *(aten.linspace.default, aten.linspace.Tensor_Tensor),
    *(aten.linspace.Tensor_Scalar, aten.linspace.Scalar_Tensor),
)
RESIZED = {
    aten.upsample_linear1d.default: (1, ([7], False)),
    aten.upsample_linear1d.vec: (1, (None, False, [1.2])),
    aten.upsample_bilinear2d.default: (2, ([7, 3], True)),
    aten.upsample_bicubic2d.default: (2, ([7, 3], False)),
    aten.upsample_bicubic2d.vec: (2, (None, False, [1.7, 2.0])),
    aten.upsample_trilinear3d.default: (3, ([7, 3, 6], False)),
    aten.upsample_trilinear3d.vec: (3, (None, True, [1.7, 2.0, 0.6])),
}
ELSEWHERE = {
    aten.lerp.Scalar,
    aten.linalg_vector_norm.default,
    aten.sort.default,
    aten.bucketize.Tensor,
    aten.addmv.default,
    aten.addbmm.default,
    torch.ops.prims.convert_element_type.default,
    aten._trilinear.default,
    aten.dist.default,
    aten.take.default,
    aten._int_mm.default,
    aten._native_batch_norm_legit_functional.default,
    aten._batch_norm_with_update_functional.default,
    *SPECIAL,
    *ORDER,
    *GRID,
    *ZETA,
    *FLOATS,
    *PLACES,
    *NETS,
    *STEPS,
    POLYNOMIAL,
}


def numbers(dtype: torch.dtype) -> torch.Tensor:
    values = torch.tensor([*ODD, *HUGE, math.nan], dtype=torch.float64)
    return torch.cat([values, torch.randn(40, dtype=torch.float64) * 3]).to(dtype)


def check(op, *args, **named):
    actual, expected = OURS[op](*args, **named), op(*args, **named)
    tolerance = TOLERANCE.get(expected.dtype, 0)
    near_zero = tolerance if op in PIECEWISE else tolerance / 100
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=near_zero, equal_nan=True)


def test_each_has_a_test():
    families = (SCANS, WINDOWS, SPECIAL, ORDER, GRID, RANDOM, UNIQUE, COMPLEX)  # each has a file
    elsewhere = ELSEWHERE.union(*(family.keys() for family in families))
    assert {*POINTWISE, *PAIRS, *SHIFTS, *LINES, *RESIZED, *elsewhere} == set(OURS)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", POINTWISE, ids=str)
def test_one_operand(op, dtype):
    x = numbers(dtype)
    if op in PIECEWISE:
        x = x[x.isfinite() & (x.abs() < 1e37)]
    check(op, x)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
@pytest.mark.parametrize("op", [aten.exp2.default, aten.erfc.default], ids=str)
def test_of_integers(op, dtype):
    check(op, torch.tensor([0, 1, 2, 5, 70, -1, -3]).to(dtype))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_numbers_in_the_place_of_none(dtype):
    for given in ((1.5,), (None, 7.0), (None, None, -2.0), (math.nan, math.inf, 3.0), (0.5, 1, 2)):
        check(aten.nan_to_num.default, numbers(dtype), *given)
    check(aten.nan_to_num.default, torch.tensor([1, -3]), 2.0)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("weight", [0, 0.3, 0.5, 0.7, 1, -1.5, 2])
def test_between_two(weight, dtype):
    x = numbers(dtype)
    check(aten.lerp.Scalar, x[:, None], x[None], weight)
    check(aten.lerp.Scalar, x[0], x, weight)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.int8], ids=str)
@pytest.mark.parametrize("op", SHIFTS, ids=str)
def test_shifts(op, dtype):
    x, by = torch.tensor([1, 9, 100, -7]).to(dtype), torch.tensor([0, 1, 3, 5]).to(dtype)
    operands = {"Scalar": (x, 2), "Tensor": (x, by), "Scalar_Tensor": (100, by)}
    check(op, *operands[op._overloadname])


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", PAIRS, ids=str)
def test_two_operands(op, dtype):
    x = numbers(dtype)
    check(op, x[:, None], x[None])


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, math.inf, -math.inf])
def test_norm(order, dtype):
    x = torch.tensor([[300.0, -300.0, 0.0, 2.5], [6e4, 6e4, 6e4, 1e-4]]).to(dtype)
    for dims in (None, [0], [1], [0, 1]):
        check(aten.linalg_vector_norm.default, x, order, dims)
    x = torch.full((3000,), 0.7).to(dtype)
    actual = OURS[aten.linalg_vector_norm.default](x, order)
    expected = torch.linalg.vector_norm(x.double(), order).to(dtype)
    step = TOLERANCE[dtype] * 4
    torch.testing.assert_close(actual, expected, rtol=step, atol=step)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATING, torch.int64, torch.uint8], ids=str)
def test_bucketize(dtype, right):
    x = torch.tensor([math.nan, -math.inf, 0.0, 0.5, 1.0, 7.0, 300.0, math.inf])
    x = x.to(dtype) if dtype.is_floating_point else x.nan_to_num(3.0, 250, 0).to(dtype)
    for bounds in (torch.tensor([0.0, 0.5, 7.0]), torch.tensor([0, 1, 7])):
        for narrow in (False, True):
            check(aten.bucketize.Tensor, x, bounds, out_int32=narrow, right=right)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8], ids=str)
@pytest.mark.parametrize("op", LINES, ids=str)
def test_integers_on_a_line(op, dtype):
    ends = (0, 7, 4.3, 50, 0.9, 200, 3) if dtype == torch.uint8 else (0, -3, 4.3, 50, -7.8, 3000)
    for start, end in itertools.product(ends, ends):
        for steps in (0, 1, 2, 3, 49, 50, 173):
            kinds = (*op._overloadname.split("_"), "")[:2]
            given = [
                torch.tensor(x) if kind == "Tensor" else x
                for x, kind in zip((start, end), kinds, strict=True)
            ]
            check(op, *given, steps, dtype=dtype)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("taken", [(), (4,), (2, 0), (1, 2)], ids=str)
def test_take(shape, taken):
    x = torch.randn(shape)
    if x.numel() or 0 in taken:
        index = torch.randint(-x.numel(), x.numel() or 1, taken)
        check(aten.take.default, x, index)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("op", RESIZED, ids=str)
def test_resized(op, dtype):
    rank, arguments = RESIZED[op]
    x = torch.randn([2, 3, 4, 5, 6][: rank + 2], dtype=torch.float64).to(dtype)
    actual, expected = OURS[op](x, *arguments), op(x, *arguments)
    step = TOLERANCE[dtype] if dtype in (torch.float32, torch.float64) else 0
    step = TOLERANCE[dtype] if rank == 2 else step
    torch.testing.assert_close(actual, expected, rtol=step, atol=step)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_products(dtype):
    x = torch.randn(3, 4, dtype=torch.float64).to(dtype)
    check(aten.addmv.default, x[:, 0].contiguous(), x, x[0])
    check(aten.dist.default, x * 100, x.flip(0))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_sort(dtype, descending):
    x = numbers(dtype)
    actual = OURS[aten.sort.default](x, 0, descending)[0]
    torch.testing.assert_close(actual, x.sort(0, descending)[0], rtol=0, atol=0, equal_nan=True)
