# SPDX-License-Identifier: BSD-3-Clause
"""What moves integers, and what windows need of it: padding, transposition, means as pools."""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.nn import functional

from etx_backend_arm.cortex_m import operators as ops
from etx_backend_arm.cortex_m.fixed_point import factor

VIEW = torch.ops.aten.view_copy.default
PERMUTE = torch.ops.aten.permute_copy.default
MOST_RANK = 8
"""Of `cortex_m::transpose`."""


class Owner(Protocol):
    """The pass for which nodes are made."""

    def scratch(self) -> Node:
        """Return the node of the empty tensor that stands for temporary memory."""
        ...


def view(graph: Graph, x: Node, sizes: list[int]) -> Node:
    """Return `x` in another shape."""
    made = graph.call_function(VIEW, (x, sizes))
    made.meta["val"] = x.meta["val"].reshape(sizes)
    return made


def padded(graph: Graph, x: Node, widths: list[int], value: int) -> Node:
    """Return `x` with `value` around it: `widths` before and after of each dimension in turn.

    Up to four dimensions. `cortex_m::pad` takes the channels' last where they lie last in memory,
    and where an image's sizes leave the order of memory open.
    """
    value_of = x.meta["val"]
    sizes = list(value_of.shape)
    is_last = is_channels_last(value_of)
    sides = [[0] * (4 - len(sizes)) + widths[i::2] for i in (0, 1)]
    if is_last or (len(sizes) == 4 and (sizes[1] == 1 or sizes[2] == sizes[3] == 1)):
        sides = [[n, h, w, c] for n, c, h, w in sides]
    made = graph.call_function(ops.PAD, (x, *sides, value))
    pairs = [p for i in reversed(range(len(sizes))) for p in widths[2 * i : 2 * i + 2]]
    made.meta["val"] = functional.pad(value_of, pairs)
    if is_last:
        made.meta["val"] = made.meta["val"].contiguous(memory_format=torch.channels_last)
    return made


def is_channels_last(value: Tensor) -> bool:
    """Tell whether an image (N, C, H, W) has channels last in memory, and is not in rows, too."""
    return (
        value.dim() == 4
        and not value.is_contiguous()
        and value.is_contiguous(memory_format=torch.channels_last)
    )


def image_padded(graph: Graph, x: Node, padding: list[int], value: int) -> Node:
    """Return an image (N, H, W, C) with `padding` of top, left, bottom and right."""
    top, left, bottom, right = padding
    return padded(graph, x, [0, 0, top, bottom, left, right, 0, 0], value)


def pad(owner: Owner, graph: Graph, x: Node, widths: list[int], value: Any = 0) -> Node | str:
    """`constant_pad_nd(x)` -> `cortex_m::pad(x)`."""
    sizes = x.meta["val"].shape
    if x.meta["val"].dtype != torch.int8 or len(sizes) > 4 or min(widths) < 0:
        return "cortex_m::pad is of int8 and at most four dimensions, and cuts nothing off"
    pairs = [widths[i : i + 2] for i in range(0, len(widths), 2)]
    pairs += [[0, 0]] * (len(sizes) - len(pairs))
    return padded(graph, x, [side for pair in reversed(pairs) for side in pair], int(value))


def permute(owner: Owner, graph: Graph, x: Node, order: list[int]) -> Node | str:
    """`permute(x)` -> `cortex_m::transpose(x)`."""
    if x.meta["val"].dtype != torch.int8 or not 0 < len(order) <= MOST_RANK:
        return f"cortex_m::transpose is of int8 and at most {MOST_RANK} dimensions"
    return graph.call_function(ops.TRANSPOSE, (x, list(order)))


def mean(
    owner: Owner, graph: Graph, x: Node, dim: list[int], keepdim: bool, scale: float,
    zero_point: int, offset: int, low: int, high: int,
) -> Node | str:  # fmt: skip
    """`mean(x)` over neighbouring dimensions -> a pool with one window."""
    sizes = list(x.meta["val"].shape)
    dims = sorted(d % len(sizes) for d in dim)
    first, last = dims[0], dims[-1] + 1
    if abs(scale - 1) > 1e-6 or zero_point != offset or (low, high) != (-128, 127):
        return "cortex_m::quantized_avg_pool2d keeps scale and zero point"
    if dims != list(range(first, last)):
        return "no window covers dimensions that are not neighbours"
    count = math.prod(sizes[first:last])
    image = [math.prod(sizes[:first]), count, 1, math.prod(sizes[last:])]
    numbers = (zero_point, *factor(1.0), owner.scratch())
    window = ([count, 1], [1, 1], [0, 0], False)
    pooled = graph.call_function(ops.AVG_POOL2D, (view(graph, x, image), *window, *numbers))
    pooled.meta["val"] = x.meta["val"].new_empty([image[0], 1, 1, image[3]])
    kept = [1 if d in dims else n for d, n in enumerate(sizes) if keepdim or d not in dims]
    return view(graph, pooled, kept)
