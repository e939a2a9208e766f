# SPDX-License-Identifier: BSD-3-Clause
"""Primitive operators against Python's own arithmetic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import PLUGIN, KernelError, Out, Slot

PRIM = "executorch_prim::"
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add.Scalar": operator.add,
    "sub.Scalar": operator.sub,
    "mul.Scalar": operator.mul,
    "floordiv.Scalar": operator.floordiv,
    "floordiv.int": operator.floordiv,
    "truediv.Scalar": operator.truediv,
    "mod.Scalar": operator.mod,
    "mod.int": operator.mod,
    "eq.Scalar": operator.eq,
    "gt.Scalar": operator.gt,
    "lt.Scalar": operator.lt,
    "ge.Scalar": operator.ge,
    "le.Scalar": operator.le,
    "sym_max.Scalar": max,
    "sym_min.Scalar": min,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg.Scalar": operator.neg,
    "ceil.Scalar": math.ceil,
    "round.Scalar": round,
    "trunc.Scalar": math.trunc,
    "sym_float.Scalar": float,
    "sym_int.Scalar": int,
}
PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (0, 5), (7.5, 2), (-7.5, 2), (3, 0.5)]


def prim(name: str, *args: Any) -> Any:
    return PLUGIN.call(PRIM + name, *args, Slot())[0]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_binary(name: str, a: float, b: float) -> None:
    if name.endswith(".int"):
        a, b = int(a), int(b) or 1
    expected = BINARY[name](a, b)
    if name in ("sym_max.Scalar", "sym_min.Scalar") and float in (type(a), type(b)):
        expected = float(expected)
    actual = prim(name, a, b)
    assert (actual, type(actual)) == (expected, type(expected))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("a", [3, -3, 2.5, 3.5, -2.5, 0.0])
def test_unary(name: str, a: float) -> None:
    expected = UNARY[name](a)
    actual = prim(name, a)
    assert (actual, type(actual)) == (expected, type(expected))


@pytest.mark.parametrize("name", ["floordiv.Scalar", "floordiv.int", "mod.int", "truediv.Scalar"])
def test_division_by_zero_fails(name: str) -> None:
    with pytest.raises(KernelError, match="must not be zero"):
        prim(name, 3, 0)


def test_the_smallest_integer_wraps() -> None:
    smallest = -(2**63)
    assert prim("neg.Scalar", smallest) == smallest
    assert prim("floordiv.int", smallest, -1) == smallest
    assert prim("mod.int", smallest, -1) == 0
    assert prim("add.Scalar", smallest, -1) == 2**63 - 1


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e300])
def test_rounding_to_an_integer_needs_room(value: float) -> None:
    with pytest.raises(KernelError, match="fit into an int64"):
        prim("ceil.Scalar", value)


def test_choice() -> None:
    assert prim("sym_ite.Scalar", True, 3, 4.5) == 3
    assert prim("sym_ite.Scalar", False, 3, 4.5) == 4.5
    assert prim("sym_not.Scalar", True) is False
    assert prim("sym_not.Scalar", False) is True


def test_sizes() -> None:
    tensor = torch.zeros(2, 3, 5)
    assert PLUGIN.call("aten::sym_size.int", tensor, -2, Slot()) == [3]
    assert PLUGIN.call("aten::sym_numel", tensor, Slot()) == [30]
    with pytest.raises(KernelError, match="less than rank"):
        PLUGIN.call("aten::sym_size.int", tensor, 3, Slot())


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
)
def test_item(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[1.0]]).to(dtype)
    actual = PLUGIN.call("aten::_local_scalar_dense", tensor, Slot())[0]
    assert (actual, type(actual)) == (tensor.item(), type(tensor.item()))
    with pytest.raises(KernelError, match="exactly one element"):
        PLUGIN.call("aten::_local_scalar_dense", torch.zeros(2, dtype=dtype), Slot())


def view(tensor: torch.Tensor, size: list[int], shape: list[int]) -> Any:
    return PLUGIN.view("executorch_prim::et_view.default", tensor, size, shape)


def test_view_shares_memory() -> None:
    tensor = torch.arange(12.0)
    assert view(tensor, [3, -1], [3, 4]) == (tensor.data_ptr(), [3, 4])
    assert view(tensor, [2, 6], [3, 4]) == (tensor.data_ptr(), [2, 6])


def test_view_of_a_part() -> None:
    tensor = torch.arange(12.0)
    for offset, shape in ((0, [3, 4]), (4, [2, 4]), (11, [1]), (12, [0]), (3, [0])):
        address = tensor.data_ptr() + 4 * offset
        assert PLUGIN.view("etx::view_at.default", tensor, offset, shape) == (address, shape)


@pytest.mark.parametrize(
    ("offset", "shape"), [(-1, [3]), (10, [3]), (13, [0]), (2**62, [1]), (-(2**62), [0])]
)
def test_view_beyond_its_input_fails(offset: int, shape: list[int]) -> None:
    with pytest.raises(KernelError, match="offset elements and then those of out"):
        PLUGIN.view("etx::view_at.default", torch.arange(12.0), offset, shape)


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ([-1, -1], "only one item"),
        ([5, -1], "divide the number"),
        ([5, 5], "as many elements"),
        ([0, -1], "divide the number"),
        ([2**62, 2**62], "as many elements"),
        ([-2, 6], "at least -1"),
        ([12], "one dimension for each"),
    ],
)
def test_view_of_another_size_fails(size: list[int], reason: str) -> None:
    with pytest.raises(KernelError, match=reason):
        view(torch.arange(12.0), size, [3, 4])


def test_copy_index_grows_row_by_row() -> None:
    rows = torch.arange(6.0).reshape(3, 2)
    kernel = "executorch_prim::et_copy_index.tensor"
    for index in range(3):
        (grown,) = PLUGIN.call(kernel, Out([3, 2], torch.float32), rows[index], index)
        assert grown.shape == (index + 1, 2)
        torch.testing.assert_close(grown[index], rows[index])
    with pytest.raises(KernelError, match="room"):
        PLUGIN.call(kernel, Out([3, 2], torch.float32, slack=0), rows[0], 3)
