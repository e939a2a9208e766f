# SPDX-License-Identifier: BSD-3-Clause
"""The integer operators, as support/integer_ops.py registers them: int8 results to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import integer_ops
import torch
from case import F32, I8, Case
from integer_reference import Geometry, pack, pack_groups, pack_int4
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

DEFINED = integer_ops.define_operators()
OUTPUT = (3, -100, 120)
INF = float("inf")
GROUP = 8
WINDOWS = (
    Geometry(),
    Geometry((1, 1), padding=(0, 0, 0, 0)),
    Geometry((3, 2), (2, 1), (0, 1, 2, 0)),
    Geometry((2, 3), (1, 2), (1, 2, 1, 2), (2, 1)),
)
SPACED = Geometry((3, 3), (1, 1), (2, 2, 1, 1), (1, 1), (2, 2))


def bytes_of(*shape: int) -> Tensor:
    return torch.randint(-128, 128, shape).to(torch.int8)


def scales_of(n: int, depth: int) -> Tensor:
    return (torch.rand(n) + 0.1) / (64 * (depth + 1) ** 0.5)


def layer(weight: Tensor, packed: Tensor, biased: bool) -> tuple[Any, ...]:
    n = weight.shape[0]
    bias = torch.randint(-5000, 5000, (n,)).int() if biased else None
    sums = weight.flatten(1).sum(1).int()
    return packed, sums, bias, scales_of(n, weight[0].numel())


def linear() -> Iterator[SampleInput]:
    for shape, n in (((5,), 3), ((3, 8), 16), ((2, 7, 33), 47), ((17, 64), 1)):
        w = bytes_of(n, shape[-1])
        yield SampleInput(bytes_of(*shape), *layer(w, pack(w), n > 3), -7, *OUTPUT)


def conv() -> Iterator[SampleInput]:
    for window in (*WINDOWS, SPACED):
        for groups, channels, columns in ((1, 3, 8), (2, 4, 5)):
            w = bytes_of(groups * columns, *window.kernel, channels)
            given = layer(w, pack(w, groups), groups == 1)
            x = bytes_of(2, 7, 6, groups * channels)
            yield SampleInput(x, *given, *window.lists(), list(window.spacing), groups, 5, *OUTPUT)


def depthwise_conv() -> Iterator[SampleInput]:
    for window in WINDOWS:
        for channels in (1, 8, 37):
            w = bytes_of(channels, *window.kernel, 1)
            given = layer(w, w.flatten(1).T.contiguous(), channels > 1)
            yield SampleInput(bytes_of(2, 7, 6, channels), *given, *window.lists(), 5, *OUTPUT)


def add() -> Iterator[SampleInput]:
    for shape in ((1,), (3, 5), (2, 3, 4, 19)):
        yield SampleInput(bytes_of(*shape), bytes_of(*shape), 0.37, -5, 1.9, 20, *OUTPUT)


def mul() -> Iterator[SampleInput]:
    for shape in ((1,), (3, 5), (2, 3, 4, 19)):
        yield SampleInput(bytes_of(*shape), bytes_of(*shape), 0.011, -5, 20, *OUTPUT)


def avg_pool() -> Iterator[SampleInput]:
    for window in WINDOWS[:3]:
        for counts in (True, False):
            lists = window.lists()[:3]
            yield SampleInput(bytes_of(2, 7, 6, 9), *lists, counts, 0.7, -3, *OUTPUT)


def mean() -> Iterator[SampleInput]:
    for dims in ([1, 2], [1], [3], [0, 2, 3]):
        for keep in (True, False):
            yield SampleInput(bytes_of(2, 5, 6, 9), dims, keep, 0.8, 11, *OUTPUT)


def points_of(size: int, count: int) -> Tensor:
    """Return places of `count` points between `size`, the last of them among them."""
    places = torch.randint(0, (size - 1) * 2048 + 1, (count,))
    places[-1] = (size - 1) * 2048
    return torch.stack([places // 2048, places % 2048], 1).int()


def interpolate() -> Iterator[SampleInput]:
    for channels in (1, 3, 16, 37):
        points = points_of(5, 11), points_of(6, 4)
        yield SampleInput(bytes_of(2, 5, 6, channels), *points, 0.9, -7, *OUTPUT)


def max_pool() -> Iterator[SampleInput]:
    for window in WINDOWS:
        yield SampleInput(bytes_of(2, 7, 6, 9), *window.lists())


def lookup() -> Iterator[SampleInput]:
    for shape in ((), (0, 3), (256,), (2, 3, 5)):
        yield SampleInput(bytes_of(*shape), bytes_of(256))


def rows() -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """Yield rows of numbers, an int8 matrix and a bias."""
    for shape, n in (((8,), 3), ((3, 24), 16), ((2, 7, 64), 47)):
        yield torch.randn(shape), bytes_of(n, shape[-1]), torch.randn(n) if n > 3 else None


def dynamic_linear() -> Iterator[SampleInput]:
    for x, w, bias in rows():
        sums, scales = w.sum(1).int(), scales_of(*w.shape)
        for limits in ((-INF, INF), (0.0, 1.5)):
            yield SampleInput(x, pack(w), sums, scales, bias, *limits)


def dynamic_conv() -> Iterator[SampleInput]:
    for window in (*WINDOWS, SPACED):
        for groups, channels, columns in ((1, 3, 8), (2, 4, 5), (1, 4, 33)):
            w = bytes_of(groups * columns, *window.kernel, channels)
            n, depth = w.shape[0], w[0].numel()
            scale, zero = torch.tensor([0.037], dtype=torch.float64), torch.tensor([-9])
            bias = torch.randn(n) if groups == 1 else None
            given = pack(w, groups), w.flatten(1).sum(1).int(), scales_of(n, depth), bias
            x, lists = bytes_of(2, 7, 6, groups * channels), window.lists()
            for limits in ((-INF, INF), (0.0, 1.5)):
                moves = (*lists, list(window.spacing), groups)
                yield SampleInput(x, scale, zero, *given, *moves, *limits)


def weight_only_linear() -> Iterator[SampleInput]:
    for x, w, bias in rows():
        for limits in ((-INF, INF), (0.0, 1.5)):
            yield SampleInput(x, pack(w), scales_of(*w.shape), bias, *limits)


def of_groups() -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None, int]]:
    """Yield rows, a packed matrix, its sums and scales by group, a bias and how many columns."""
    for i, (x, w, bias) in enumerate(rows()):
        w = w >> 4
        groups = w.shape[1] // GROUP
        sums = w.reshape(-1, groups, GROUP).sum(-1).T.int().contiguous()
        scales = (torch.rand(groups, w.shape[0]) + 0.1) / 8
        scales = scales.bfloat16() if i % 2 else scales
        yield x, pack_int4(w), pack_groups(sums), pack_groups(scales), bias, w.shape[0]


def dynamic_linear_int4() -> Iterator[SampleInput]:
    for x, w, sums, scales, bias, n in of_groups():
        yield SampleInput(x, w, sums, scales, bias, GROUP, n, -INF, INF)


def weight_only_linear_int4() -> Iterator[SampleInput]:
    for x, w, _, scales, bias, n in of_groups():
        yield SampleInput(x, w, scales.float(), bias, GROUP, n, -INF, INF)


def case(
    name: str, samples: Callable[[], Iterator[SampleInput]], tol: float | None, dtype: Any = None
) -> Case:
    dtype = dtype or (I8 if tol is None else F32)

    def draw(info: Any, device: Any, dtype: Any, requires_grad: bool, **kwargs: Any) -> Any:
        torch.manual_seed(0)
        return samples()

    op = getattr(torch.ops.etx, name)
    info = OpInfo(f"etx.{name}", op=op, dtypes={dtype}, sample_inputs_func=draw)
    return Case(f"etx.{name}", dtypes=(dtype,), tol=tol, samples=20, own=info)


CASES = [
    case("quantized_linear", linear, None),
    case("quantized_conv", conv, None),
    case("quantized_depthwise_conv", depthwise_conv, None),
    case("quantized_add", add, None),
    case("quantized_mul", mul, None),
    case("quantized_avg_pool", avg_pool, None),
    case("quantized_mean", mean, None),
    case("quantized_interpolate", interpolate, None),
    case("quantized_max_pool", max_pool, None),
    case("lookup", lookup, None),
    case("dynamic_linear", dynamic_linear, 1e-5),
    case("dynamic_conv", dynamic_conv, 1e-5, I8),
    case("dynamic_linear_int4", dynamic_linear_int4, 1e-5),
    case("weight_only_linear", weight_only_linear, 1e-5),
    case("weight_only_linear_int4", weight_only_linear_int4, 1e-5),
]
