# SPDX-License-Identifier: BSD-3-Clause
"""Long calls are divided among threads; short ones cost less than waking one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import PLUGIN, Out

F32 = torch.float32


def out(*shape: int) -> Out:
    return Out(list(shape), F32)


def linear(rows: int, depth: int, columns: int) -> list[Any]:
    return [torch.ones(rows, depth), torch.ones(columns, depth), None, out(rows, columns)]


def convolution(channels: int, side: int, groups: int, padding: int = 1) -> list[Any]:
    size = side + 2 * padding - 2
    weight = torch.ones(channels, channels // groups, 3, 3)
    given = [torch.ones(1, channels, side, side), weight, None]
    window = [[1, 1], [padding, padding], [1, 1], False, [0, 0]]
    return [*given, *window, groups, out(1, channels, size, size)]


def recurrent(gates: int, states: int, *more: bool) -> list[Any]:
    weights = [torch.ones(gates * states, states) * 0.01 for _ in range(2)]
    state = torch.zeros(1, states)
    cells, projection, outs = [], [], [out(3, 1, states)]
    if gates == 4:
        cells, projection, outs = [state], [None], [*outs, out(1, states)]
    given = [torch.ones(3, 1, states), state, *cells, *weights, None, None, *projection]
    return [*given, False, False, *more, *outs]


def packed_recurrent(gates: int, states: int, *more: bool) -> list[Any]:
    float32, packed = recurrent(gates, states, *more), []
    weight = torch.ones(gates * states // 16, states // 4, 16, 4, dtype=torch.int8)
    for value in float32:
        is_matrix = isinstance(value, torch.Tensor) and value.shape == (gates * states, states)
        packed += [weight, torch.full((len(weight), 1, 16), 0.01)] if is_matrix else [value]
    if gates == 4:
        packed.insert(-4, None)
    return packed


def pool(channels: int, side: int) -> list[Any]:
    window = [[2, 2], [2, 2], [0, 0], [1, 1], False]
    return [torch.ones(1, channels, side, side), *window, out(1, channels, side // 2, side // 2)]


def average(channels: int, side: int) -> list[Any]:
    window = [[3, 3], [1, 1], [1, 1], False, True, None]
    return [torch.ones(1, channels, side, side), *window, out(1, channels, side, side)]


def attention(heads: int, rows: int) -> list[Any]:
    side = torch.ones(heads, rows, 32)
    return [side, side, side, None, [], 0.5, False, out(heads, rows, 32)]


def rows(batch: int, length: int, width: int) -> list[Any]:
    query, key = torch.ones(batch, 16, width), torch.ones(batch, length, width)
    return [query, key, out(batch, 16, length)]


def one_row(batch: int, depth: int, width: int) -> list[Any]:
    return [torch.ones(batch, 1, depth), torch.ones(batch, depth, width), out(batch, 1, width)]


def one_query(heads: int, keys: int) -> list[Any]:
    query, key = torch.ones(heads, 1, 32), torch.ones(heads, keys, 32)
    return [query, key, key, None, [], 0.5, False, out(heads, 1, 32)]


def each(*names: str) -> dict[str, tuple[list[Any], list[Any]]]:
    large, small = torch.ones(1 << 18), torch.ones(64)
    return {name: ([large, out(1 << 18)], [small, out(64)]) for name in names}


CALLS: dict[str, tuple[list[Any], list[Any]]] = {
    "aten::linear.out, one row": (linear(1, 512, 512), linear(1, 64, 64)),
    "aten::linear.out": (linear(64, 128, 128), linear(12, 16, 16)),
    "aten::bmm.out, one row": (one_row(12, 255, 64), one_row(2, 16, 8)),
    "etx::bmm_nt.out": (rows(12, 255, 64), rows(2, 16, 8)),
    "aten::convolution.out": (convolution(32, 28, 1), convolution(8, 6, 1)),
    "aten::convolution.out, depthwise": (convolution(64, 56, 64), convolution(16, 6, 16)),
    "aten::convolution.out, one point": (convolution(128, 3, 1, 0), convolution(16, 3, 1, 0)),
    "etx::lstm.out": (recurrent(4, 256), recurrent(4, 16)),
    "etx::gru.out": (recurrent(3, 256), recurrent(3, 16)),
    "etx::rnn.out": (recurrent(1, 512, False), recurrent(1, 16, False)),
    "etx::weight_only_lstm.out": (packed_recurrent(4, 256), packed_recurrent(4, 16)),
    "etx::weight_only_gru.out": (packed_recurrent(3, 256), packed_recurrent(3, 16)),
    "etx::weight_only_rnn.out": (
        packed_recurrent(1, 512, False),
        packed_recurrent(1, 16, False),
    ),
    "etx::max_pool2d.out": (pool(64, 112), pool(4, 8)),
    "aten::avg_pool2d.out": (average(64, 56), average(4, 8)),
    "etx::attention.out, one query": (one_query(8, 200), one_query(2, 16)),
    "etx::attention.out": (attention(8, 128), attention(1, 4)),
    **each("aten::silu.out", "aten::hardswish.out", "aten::hardsigmoid.out", "aten::exp.out"),
}


@pytest.mark.parametrize("name", CALLS)
def test_long_calls_alone_are_divided(name: str) -> None:
    for args, is_long in zip(CALLS[name], (True, False), strict=True):
        PLUGIN.call(name.partition(",")[0], *args, threads=2)
        assert PLUGIN.is_divided is is_long
        PLUGIN.call(name.partition(",")[0], *args, threads=1)
