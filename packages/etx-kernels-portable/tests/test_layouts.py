# SPDX-License-Identifier: BSD-3-Clause
"""Dim orders that differ between operands, broadcasting, sizes of zero, threads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from harness import PLUGIN, Out
from torch.testing import assert_close

LAST = torch.channels_last
ROWS = torch.contiguous_format
FORMATS = {"rows": ROWS, "last": LAST}
ORDERS = {ROWS: [0, 1, 2, 3], LAST: [0, 2, 3, 1]}
SHAPE = (2, 5, 3, 4)


def image(shape: tuple[int, ...], memory_format: torch.memory_format) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(shape).contiguous(memory_format=memory_format)


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [*product(FORMATS.values(), repeat=3)],
    ids=[*map("-".join, product(FORMATS, repeat=3))],
)
@pytest.mark.parametrize("shape", [SHAPE, (1, 5, 1, 1), (2, 1, 3, 4), (2, 5, 1, 4)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_binary(a: Any, b: Any, out: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, y = image(SHAPE, a), image(shape, b).to(dtype)
    target = Out(SHAPE, torch.float32, ORDERS[out])
    assert_close(PLUGIN.call("aten::sub.out", x, y, 1, target)[0], x - y, check_stride=False)
    assert_close(PLUGIN.call("aten::sub.out", y, x, 2, target)[0], y - 2 * x, check_stride=False)


@pytest.mark.parametrize(("before", "after"), [*product(FORMATS.values(), repeat=2)], ids=str)
def test_unary(before: Any, after: Any) -> None:
    x = image(SHAPE, before)
    (actual,) = PLUGIN.call("aten::exp.out", x, Out(SHAPE, torch.float32, ORDERS[after]))
    assert_close(actual, x.exp(), check_stride=False)


@pytest.mark.parametrize("memory_format", [*FORMATS.values()], ids=[*FORMATS])
@pytest.mark.parametrize("dims", [[0], [1], [2, 3], [1, 3], [0, 2, 3], [0, 1, 2, 3]], ids=str)
@pytest.mark.parametrize("keepdim", [True, False])
def test_reduction(memory_format: Any, dims: list[int], keepdim: bool) -> None:
    x = image(SHAPE, memory_format)
    folds: dict[str, tuple[Callable[..., torch.Tensor], list[Any]]] = {
        "aten::sum.IntList_out": (torch.sum, [None]),
        "aten::mean.out": (torch.mean, [None]),
        "aten::amax.out": (torch.amax, []),
        "aten::var.correction_out": (torch.var, []),
    }
    for name, (eager, rest) in folds.items():
        expected = eager(x, dim=dims, keepdim=keepdim)
        args = [dims, 1, keepdim] if "var" in name else [dims, keepdim, *rest]
        (actual,) = PLUGIN.call(name, x, *args, Out(expected.shape, torch.float32))
        assert_close(actual, expected)


@pytest.mark.parametrize("memory_format", [*FORMATS.values()], ids=[*FORMATS])
@pytest.mark.parametrize("dim", [0, 1, 2, 3, None])
def test_argmax_counts_in_index_order(memory_format: Any, dim: int | None) -> None:
    x = image(SHAPE, memory_format).round()
    expected = x.contiguous().argmax(dim)
    (actual,) = PLUGIN.call("aten::argmax.out", x, dim, False, Out(expected.shape, torch.int64))
    assert_close(actual, expected)


@pytest.mark.parametrize("memory_format", [*FORMATS.values()], ids=[*FORMATS])
@pytest.mark.parametrize("dim", range(4))
def test_cumsum(memory_format: Any, dim: int) -> None:
    x = image(SHAPE, memory_format)
    out = Out(SHAPE, torch.float32, ORDERS[memory_format])
    (actual,) = PLUGIN.call("aten::cumsum.out", x, dim, None, out)
    assert_close(actual, x.cumsum(dim), check_stride=False)


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (0, 4)], ids=str)
def test_sizes_of_zero(shape: tuple[int, ...]) -> None:
    x = torch.empty(shape)
    (actual,) = PLUGIN.call("aten::add.out", x, x, 1, Out(shape, torch.float32))
    assert actual.shape == shape
    (actual,) = PLUGIN.call("aten::sum.IntList_out", x, [], False, None, Out((), torch.float32))
    assert_close(actual, torch.tensor(0.0))
    (actual,) = PLUGIN.call("aten::mean.out", x, None, False, None, Out((), torch.float32))
    assert bool(actual.isnan())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shapes",
    [((300, 500), (300, 500)), ((300, 500), (500,)), ((300, 500), (300, 1)), ((150000,), ())],
    ids=str,
)
def test_large_tensors_are_split(threads: int, shapes: Any) -> None:
    a, b = (torch.randn(shape) for shape in shapes)
    expected = a * b
    out = Out(expected.shape, torch.float32)
    assert_close(PLUGIN.call("aten::mul.out", a, b, out, threads=threads)[0], expected)
    for dims in ([0], [-1]):
        total = expected.sum(dims)
        out = Out(total.shape, torch.float32)
        args = (expected, dims, False, None, out)
        (actual,) = PLUGIN.call("aten::sum.IntList_out", *args, threads=threads)
        assert_close(actual, total, atol=1e-3, rtol=1e-4)


def test_a_long_column_is_summed_precisely() -> None:
    x = torch.full((200000, 3), 0.1)
    (actual,) = PLUGIN.call("aten::sum.IntList_out", x, [0], False, None, Out((3,), torch.float32))
    assert_close(actual.double(), x.double().sum(0), rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", ["aten::maximum.out", "aten::minimum.out"])
def test_nan_wins(name: str) -> None:
    x = torch.tensor([1.0, float("nan"), 3.0] * 7)
    y = torch.tensor([float("nan"), 2.0, 4.0] * 7)
    eager = getattr(torch, name[6:13])
    (actual,) = PLUGIN.call(name, x, y, Out(x.shape, torch.float32))
    assert_close(actual, eager(x, y), equal_nan=True)
    fold = "aten::amax.out" if name == "aten::maximum.out" else "aten::amin.out"
    assert bool(PLUGIN.call(fold, x, [], False, Out((), torch.float32))[0].isnan())
    (at,) = PLUGIN.call("aten::argmax.out", x, None, False, Out((), torch.int64))
    assert at.item() == 1
