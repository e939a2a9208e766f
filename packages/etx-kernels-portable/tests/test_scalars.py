# SPDX-License-Identifier: BSD-3-Clause
"""Overloads that take numbers; eager calls those that take tensors instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from case import BF16, BOOL, F16, F32, F64, I32, I64, U8, label
from harness import PLUGIN, Out
from intercept import Intercept

aten = torch.ops.aten
FLOATING = (F32, F64, F16, BF16)
INTEGRAL = (I64, I32, U8)
REAL = (*FLOATING, *INTEGRAL)

CASES: list[tuple[str, str, tuple[torch.dtype, ...], list[tuple[Any, ...]]]] = [
    ("add", "Scalar", (*REAL, BOOL), [(2, 1), (2, 3), (0.5,)]),
    ("sub", "Scalar", REAL, [(2, 1), (2, 3), (0.5,)]),
    ("rsub", "Scalar", REAL, [(2, 1), (2, 3), (0.5,)]),
    ("mul", "Scalar", (*REAL, BOOL), [(3,), (0.5,), (True,)]),
    ("div", "Scalar", (*REAL, BOOL), [(3,), (0.5,)]),
    ("div", "Scalar_mode", (F32, F64, I64), [(2, "floor"), (2, "trunc"), (0.5, "floor")]),
    ("fmod", "Scalar", REAL, [(3,), (2.5,)]),
    ("remainder", "Scalar", REAL, [(3,), (2.5,)]),
    ("pow", "Scalar", (F32, F64, I64), [(2,), (0.5,)]),
    ("pow", "Tensor_Scalar", REAL, [(2,), (3,), (0,), (0.5,), (1.5,)]),
    ("pow", "Tensor_Scalar", FLOATING, [(-1,), (-2,), (-0.5,)]),
    ("bitwise_and", "Scalar", (*INTEGRAL, BOOL), [(6,), (1,)]),
    ("bitwise_or", "Scalar", (*INTEGRAL, BOOL), [(6,), (1,)]),
    ("bitwise_xor", "Scalar", (*INTEGRAL, BOOL), [(6,), (1,)]),
    ("bitwise_left_shift", "Tensor_Scalar", INTEGRAL, [(0,), (3,), (70,)]),
    ("bitwise_right_shift", "Tensor_Scalar", INTEGRAL, [(0,), (3,), (70,)]),
    *((op, "Scalar", (*REAL, BOOL), [(2,), (1.5,)]) for op in ("eq", "ne", "lt", "le", "gt", "ge")),
    ("clamp", "default", REAL, [(-1, 2), (None, 1), (1, None), (2, 1)]),
    ("hardtanh", "default", (F32, I64), [(-1, 2)]),
]


def numbers(dtype: torch.dtype) -> torch.Tensor:
    values = torch.tensor([[0, 1, 2, 3, 5, 7.5], [1, 4, 2.5, 6, 9, 100]])
    return values.to(dtype) if dtype in (U8, BOOL) else (values - 3).to(dtype)


@pytest.mark.parametrize(
    ("op", "overload", "dtype", "args"),
    [
        pytest.param(op, overload, dtype, args, id=f"{op}.{overload}-{label(dtype)}-{args}")
        for op, overload, dtypes, arguments in CASES
        for dtype in dtypes
        for args in arguments
    ],
)
def test_number(op: str, overload: str, dtype: torch.dtype, args: tuple[Any, ...]) -> None:
    function = getattr(getattr(aten, op), overload)
    x = numbers(dtype)
    given = [*args, x] if (op, overload) == ("pow", "Scalar") else [x, *args]
    named = {"rounding_mode": given.pop()} if overload == "Scalar_mode" else {}
    with Intercept() as intercept:
        function(*given, **named)
    assert len(intercept.reached) == 1
    assert intercept.reached[0].startswith(f"aten::{op}.")


@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("dtype", FLOATING, ids=label)
def test_var(dtype: torch.dtype, unbiased: bool) -> None:
    x = numbers(dtype)
    expected = x.var([1], unbiased, keepdim=True)
    (actual,) = PLUGIN.call("aten::var.out", x, [1], unbiased, True, Out((2, 1), dtype))
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("end", [5, 0, 4.5])
def test_arange(end: float) -> None:
    with Intercept() as intercept:
        aten.arange.default(end)
    assert intercept.reached == ["aten::arange.out"]
