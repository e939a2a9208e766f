# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that move elements: sizes that reach every loop, layouts, empty tensors, errors."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
import torch
from etx_schema.dtypes import DTYPE_SETS
from harness import PLUGIN, KernelError, Out

LAST = [0, 2, 3, 1]
FIRST = [0, 1, 2, 3]
WIDTHS = (torch.uint8, torch.float16, torch.float32, torch.int64, torch.complex128)


def aten(name: str, *args: Any) -> Any:
    return PLUGIN.call(f"aten::{name}", *args)[0]


def filled(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 251).reshape(shape).to(dtype)


def last(x: torch.Tensor) -> torch.Tensor:
    return x.to(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_lines_of_every_length_backwards(dtype: torch.dtype) -> None:
    for length in (*range(1, 40), 64, 99):
        x = filled((3, length), dtype)
        for part in (x, x.t()):
            for dims in ([0], [1], [0, 1]):
                want = part.flip(dims)
                assert torch.equal(aten("flip.out", part, dims, Out(want.shape, dtype)), want)


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 4), (17, 2, 35), (1, 33, 40), (64, 3, 3), (5, 4, 16)])
def test_every_permutation(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = filled(shape, dtype)
    for dims in itertools.permutations(range(3)):
        want = x.permute(dims).contiguous()
        assert torch.equal(aten("permute_copy.out", x, dims, Out(want.shape, dtype)), want)


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_transposes_of_all_small_sizes(dtype: torch.dtype) -> None:
    for rows, columns in itertools.product((*range(1, 20), 37), repeat=2):
        x = filled((rows, columns), dtype)
        assert torch.equal(aten("t_copy.out", x, Out((columns, rows), dtype)), x.t())


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 64])
@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_between_layouts(channels: int, dtype: torch.dtype) -> None:
    x = filled((2, channels, 9, 37), dtype)
    for source, order in itertools.product((x, last(x)), (FIRST, LAST)):
        assert torch.equal(aten("alias_copy.out", source, Out(x.shape, dtype, order)), x)
        got = aten("view_copy.out", source, [2, 9, channels, 37], Out([2, 9, channels, 37], dtype))
        assert torch.equal(got, x.reshape(2, 9, channels, 37))


@pytest.mark.parametrize("orders", list(itertools.product((FIRST, LAST), repeat=2)), ids=str)
def test_view_of_any_layout(orders: tuple[list[int], list[int]]) -> None:
    x = filled((2, 6, 4, 10))
    source = last(x) if orders[0] == LAST else x
    got = aten("view_copy.out", source, [4, -1, 8, 3], Out([4, 5, 8, 3], x.dtype, orders[1]))
    assert torch.equal(got, x.reshape(4, 5, 8, 3))


def put(x: torch.Tensor, indices: list[Any], values: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.index_put(x, indices, values)


def layout_cases() -> list[Any]:
    x, y = filled((2, 4, 6, 5)), filled((2, 4, 3, 5)) * -1
    index = torch.tensor([[3, 0, 1]])
    mask = (filled((2, 4, 6, 5)) % 3 == 0).logical_not()
    return [
        ("cat.out", torch.cat([x, y], 2), lambda f: ([f(x), f(y)], 2)),
        ("slice_copy.Tensor_out", x[:, :, 1:6:2], lambda f: (f(x), 2, 1, 6, 2)),
        ("narrow_copy.out", x[:, 1:3], lambda f: (f(x), 1, 1, 2)),
        ("slice_scatter.out", x.slice_scatter(y, 2, 0, 6, 2), lambda f: (f(x), f(y), 2, 0, 6, 2)),
        ("select_scatter.out", x.select_scatter(x[:, 1], 1, 2), lambda f: (f(x), x[:, 1], 1, 2)),
        ("expand_copy.out", x[:1].expand(3, 4, 6, 5), lambda f: (f(x[:1]), [3, -1, 6, 5], False)),
        ("repeat.out", x.repeat(1, 2, 1, 3), lambda f: (f(x), [1, 2, 1, 3])),
        ("flip.out", x.flip(1, 3), lambda f: (f(x), [1, -1])),
        ("roll.out", x.roll((2, -1), (1, 2)), lambda f: (f(x), [2, -1], [1, 2])),
        ("roll.out", x.roll(7), lambda f: (f(x), [7], [])),
        ("pixel_shuffle.out", torch.pixel_shuffle(x, 2), lambda f: (f(x), 2)),
        (
            "pixel_unshuffle.out",
            torch.pixel_unshuffle(x[..., :4], 2),
            lambda f: (f(x[..., :4].contiguous()), 2),
        ),
        (
            "constant_pad_nd.out",
            torch.constant_pad_nd(x, [1, -2, 3, 0, 0, 2], 9),
            lambda f: (f(x), [1, -2, 3, 0, 0, 2], 9),
        ),
        (
            "reflection_pad2d.out",
            torch.nn.functional.pad(x, [2, 1, 4, 3], "reflect"),
            lambda f: (f(x), [2, 1, 4, 3]),
        ),
        (
            "replication_pad2d.out",
            torch.nn.functional.pad(x, [2, 7, 0, -1], "replicate"),
            lambda f: (f(x), [2, 7, 0, -1]),
        ),
        ("index_select.out", x.index_select(1, index[0]), lambda f: (f(x), 1, index[0])),
        ("index.Tensor_out", x[:, index[0]], lambda f: (f(x), [None, index[0]])),
        (
            "index_put.out",
            put(x, [None, index[0]], y[:, :3, :1]),
            lambda f: (f(x), [None, index[0]], y[:, :3, :1].contiguous(), False),
        ),
        ("gather.out", x.gather(1, x.long() % 4), lambda f: (f(x), 1, f(x.long() % 4), False)),
        (
            "scatter.value_out",
            x.scatter(1, y.long() * 0, 5.0),
            lambda f: (f(x), 1, f(y.long() * 0), 5.0),
        ),
        ("masked_fill.Scalar_out", x.masked_fill(mask, -1.0), lambda f: (f(x), f(mask), -1.0)),
        (
            "masked_scatter.out",
            x.masked_scatter(mask, -x),
            lambda f: (f(x), f(mask), -x),
        ),
    ]


LAYOUTS = layout_cases()


@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case[0])
def test_channels_last(case: Any) -> None:
    name, want, arguments = case
    for convert, order in itertools.product((last, torch.Tensor.contiguous), (FIRST, LAST)):
        got = aten(name, *arguments(convert), Out(want.shape, want.dtype, order))
        assert torch.equal(got, want)


def test_borders_from_what_negative_padding_removes() -> None:
    draw = random.Random(5)
    for _ in range(600):
        dims = draw.randint(1, 3)
        size = [2] * draw.randint(1, 2) + [draw.randint(1, 5) for _ in range(dims)]
        pad = [draw.randint(-6, 6) for _ in range(2 * dims)]
        x = torch.arange(math.prod(size)).reshape(size)
        for kind, mode in (("reflection", "reflect"), ("replication", "replicate")):
            name, shape = f"{kind}_pad{dims}d.out", [max(0, n) for n in size]
            try:
                want = torch.nn.functional.pad(x.double(), pad, mode)
            except RuntimeError:
                with pytest.raises(KernelError):
                    aten(name, x, pad, Out(shape, x.dtype))
                continue
            if min(want.shape) >= 0:
                got = aten(name, x, pad, Out(want.shape, x.dtype))
                assert torch.equal(got, want.long()), (name, size, pad)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_sums_of_complex_at_indices(dtype: torch.dtype) -> None:
    x, index = torch.complex(filled((4,)), -filled((4,))).to(dtype), torch.tensor([3, 1, 3])
    values = x[:1].expand(3).contiguous() * 1j
    want = x.index_put((index,), values, accumulate=True)
    assert torch.equal(aten("index_put.out", x, [index], values, True, Out([4], dtype)), want)
    assert torch.equal(aten("index_put_", x.clone(), [index], values, True), want)


@pytest.mark.parametrize("function", [torch.cat, torch.stack], ids=["cat", "stack"])
def test_joins_tensors_of_any_two_dtypes(function: Any) -> None:
    names = {*DTYPE_SETS["real"], "bool", "complex64", "complex128"}
    for one, other in itertools.product([getattr(torch, name) for name in names], repeat=2):
        parts = [torch.tensor([2, 0, 1]).to(one), torch.tensor([1, 3, 0]).to(other)]
        expected = function(parts)
        out = Out(list(expected.shape), expected.dtype)
        (result,) = PLUGIN.call(f"aten::{function.__name__}.out", parts, 0, out)
        assert torch.equal(result, expected), (one, other)


def test_row_order_of_dynamic_results() -> None:
    x = filled((2, 4, 6, 5)) % 7
    assert torch.equal(aten("nonzero.out", last(x), Out([240, 4], torch.int64)), x.nonzero())
    mask = x > 3
    got = aten("masked_select.out", last(x), last(mask), Out([240], torch.float32))
    assert torch.equal(got, x.masked_select(mask))
    with pytest.raises(KernelError, match="room for it"):
        PLUGIN.call("aten::masked_select.out", x, mask, Out([3], torch.float32))


def test_topk_takes_the_first_of_equals() -> None:
    x = torch.tensor([[3, 1, 3, 2, 3, 2]])
    outs = Out([1, 4], torch.int64), Out([1, 4], torch.int64)
    values, indices = PLUGIN.call("aten::topk.values", x, 4, 1, True, True, *outs)
    assert values.tolist() == [[3, 3, 3, 2]]
    assert indices.tolist() == [[0, 2, 4, 3]]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.bool, torch.float16])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable(dtype: torch.dtype, descending: bool) -> None:
    x = (torch.randn(3, 200, 5) * 3).to(dtype)
    outs = Out(x.shape, dtype), Out(x.shape, torch.int64)
    got = PLUGIN.call("aten::sort.values_stable", x, True, 1, descending, *outs)
    want = torch.sort(x, stable=True, dim=1, descending=descending)
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_view_as_complex(dtype: torch.dtype) -> None:
    pairs = filled((3, 4, 2)).to(dtype)
    want = torch.view_as_complex(pairs)
    for order in ([0, 1], [1, 0]):
        out = Out([3, 4], want.dtype, dim_order=order)
        assert torch.equal(aten("view_as_complex_copy.out", pairs, out), want)
    for wrong in (pairs[..., :1].contiguous(), pairs.sum(), pairs.to(torch.bfloat16)):
        with pytest.raises(KernelError):
            aten("view_as_complex_copy.out", wrong, Out([3, 4][: wrong.dim()], want.dtype))


def test_view_as_real_and_conj() -> None:
    x = torch.complex(filled((3, 4)), -filled((3, 4)))
    got = aten("view_as_real_copy.out", x, Out([3, 4, 2], torch.float32))
    assert torch.equal(got, torch.view_as_real(x))
    got = aten("_conj_physical.out", x, Out([3, 4], torch.complex64))
    assert torch.equal(got, x.conj().resolve_conj())


def test_index_put_in_place() -> None:
    cache = torch.zeros(1, 3, 8, 4)
    new = filled((1, 3, 2, 4)) + 1
    at = [None, None, torch.tensor([5, -1])]
    (got,) = PLUGIN.call("aten::index_put_", cache, at, new, False)
    assert torch.equal(got, put(cache, at, new))


BAD: list[tuple[str, tuple[Any, ...], list[int], str]] = [
    ("index.Tensor_out", (filled((3,)), [torch.tensor([3])]), [1], "outside of the dimension"),
    ("index.Tensor_out", (filled((3,)), [torch.tensor([-4])]), [1], "outside of the dimension"),
    ("index_select.out", (filled((3,)), 0, torch.tensor([-1])), [1], "within dimension"),
    ("embedding.out", (filled((3, 2)), torch.tensor([3]), -1, False, False), [1, 2], "rows"),
    ("gather.out", (filled((3,)), 0, torch.tensor([9]), False), [1], "within dimension"),
    ("scatter.value_out", (filled((3,)), 0, torch.tensor([-1]), 1.0), [3], "within dimension"),
    ("select_copy.int_out", (filled((3, 2)), 0, 3), [2], "within dimension"),
    ("narrow_copy.out", (filled((3,)), 0, 2, 2), [2], "within dimension"),
    ("slice_copy.Tensor_out", (filled((3,)), 0, 0, 3, 0), [3], "positive"),
    ("as_strided_copy.out", (filled((6,)), [2, 3], [3, 2], 0), [2, 3], "stay within self"),
    ("as_strided_copy.out", (filled((6,)), [2], [2**62], 0), [2], "stay within self"),
    ("permute_copy.out", (filled((2, 3)), [0, 0]), [2, 3], "once"),
    ("view_copy.out", (filled((6,)), [4, -1]), [4, 2], "divide"),
    ("expand_copy.out", (filled((2, 3)), [4, 3], False), [4, 3], "size must equal"),
    ("cat.out", ([filled((2, 3)), filled((2, 4))], 0), [4, 3], "equal shapes"),
    ("cat.out", ([], 0), [1], "not be empty"),
    ("reflection_pad1d.out", (filled((1, 3)), [3, 0]), [1, 6], "less than"),
    ("topk.values", (filled((3,)), 4, 0, True, True, Out([4], torch.float32)), [4], "k must be"),
    ("repeat.out", (filled((2,)), [-1]), [2], "repeats"),
]


@pytest.mark.parametrize(("name", "args", "shape", "reason"), BAD)
def test_refuses(name: str, args: Any, shape: list[int], reason: str) -> None:
    dtype = torch.int64 if name == "topk.values" else torch.float32
    with pytest.raises(KernelError, match=reason):
        PLUGIN.call(f"aten::{name}", *args, Out(shape, dtype))


@pytest.mark.parametrize("name", ["cat.out", "repeat.out"])
def test_refuses_a_result_larger_than_its_bound(name: str) -> None:
    args = ([filled((9,)), filled((9,))], 0) if name == "cat.out" else (filled((9,)), [2])
    with pytest.raises(KernelError, match="room for it"):
        PLUGIN.call(f"aten::{name}", *args, Out([16], torch.float32))
