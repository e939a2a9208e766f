# SPDX-License-Identifier: BSD-3-Clause
"""Operators that only move or select elements do so with the integers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from etx_exir.integer.layout import Layouts, is_image, last
from etx_exir.integer.picks import PICKS, pick
from etx_exir.integer.scales import Operand, operand
from etx_exir.integer.windows import both, ends
from etx_exir.ir.integer_ops import MAX_POOL
from etx_exir.ir.ops import RESHAPES, SLICE, TABLE, VIEW, Moves, copies

aten = torch.ops.aten
Move = Callable[[Node, Layouts], Node | tuple[Node, ...] | str | None]


def move(node: Node, layouts: Layouts) -> Node | tuple[Node, ...] | str | None:
    """Return ``dequantize(move(x))`` for the node ``move(dequantize(x))``."""
    return MOVING[node.target](node, layouts)


def dequantized(node: Node, like: Node, layouts: Layouts) -> Node:
    """Return the float form of the integers of `node` with the parameters of `like`."""
    return layouts.call(like.target, node, *like.args[1:])


def _source(node: Node) -> Operand | None:
    x = operand(node.args[0])
    return x if isinstance(x, Operand) else None


def _one(node: Node, layouts: Layouts) -> Node | None:
    x = _source(node)
    if x is None:
        return None
    source: Any = node.args[0]
    moved = layouts.call(node.target, x.node, *node.args[1:], **node.kwargs)
    return dequantized(moved, source, layouts)


def _several(node: Node, layouts: Layouts) -> tuple[Node, ...] | None:
    x = _source(node)
    if x is None:
        return None
    source: Any = node.args[0]
    moved = layouts.call(node.target, x.node, *node.args[1:])
    count = len(moved.meta["val"])
    parts = [layouts.call(operator.getitem, moved, i) for i in range(count)]
    return tuple(dequantized(part, source, layouts) for part in parts)


def _reshape(node: Node, layouts: Layouts) -> Node | None:
    """Keep the channels of an image last where the shape of its points alone changes."""
    x = _source(node)
    sizes = node.meta["val"].shape
    if x is None or not is_image(x.node) or len(sizes) < 3:
        return _one(node, layouts)
    before = x.node.meta["val"].shape
    if not all(isinstance(n, int) for n in (*before, *sizes)) or before[:2] != sizes[:2]:
        return _one(node, layouts)
    image = layouts.channels_last(x.node)
    moved = layouts.call(VIEW, image, [sizes[0], *sizes[2:], sizes[1]])
    source: Any = node.args[0]
    return dequantized(layouts.channels_first(moved), source, layouts)


def _slice(node: Node, layouts: Layouts) -> Node | None:
    x = _source(node)
    if x is None or not is_image(x.node):
        return _one(node, layouts)
    rank = x.node.meta["val"].dim()
    dim: Any = node.args[1] if len(node.args) > 1 else 0
    image = layouts.channels_last(x.node)
    moved = layouts.call(node.target, image, last(rank).index(dim % rank), *node.args[2:])
    source: Any = node.args[0]
    return dequantized(layouts.channels_first(moved), source, layouts)


def _pad(node: Node, layouts: Layouts) -> Node | str | None:
    x = _source(node)
    value = node.args[2] if len(node.args) > 2 else 0
    if x is None or not isinstance(value, (int, float)):
        return None
    integer = x.scale.quantize(value)
    if (integer - x.scale.zero_point) * x.scale.scale != value:
        return f"no integer stands for the padding {value}"
    source, widths = node.args[0], list(node.args[1])  # type: ignore[arg-type]
    assert isinstance(source, Node)
    if is_image(x.node) and len(widths) <= 2 * (x.node.meta["val"].dim() - 2):
        image = layouts.channels_last(x.node)
        moved = layouts.channels_first(layouts.call(node.target, image, [0, 0, *widths], integer))
    else:
        moved = layouts.call(node.target, x.node, widths, integer)
    return dequantized(moved, source, layouts)


def _max_pool(node: Node, layouts: Layouts) -> Node | str | None:
    """Move the first result of ``max_pool2d_with_indices``."""
    pool, index = node.args
    if getattr(pool, "target", None) is not POOL or index != 0:
        return None
    assert isinstance(pool, Node)
    x = _source(pool)
    if x is None:
        return None
    if len(pool.users) > 1:
        return "the indices of the maxima are read"
    args: Any = (*pool.args, *([], 0, 1, False)[len(pool.args) - 2 :])
    _, size, stride, padding, dilation, ceil = args
    kernel, padding, dilation = both(size), both(padding), both(dilation)
    stride = both(stride) if stride else kernel
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if x.node.meta["val"].dim() != 4:
        return "only batches of images are pooled in integers"
    after = ends(x.node, pool.meta["val"][0], reach, stride, padding) if ceil else padding
    if isinstance(after, str):
        return after
    image = layouts.channels_last(x.node)
    pooled = layouts.call(MAX_POOL, image, kernel, stride, [*padding, *after], dilation)
    source: Any = pool.args[0]
    return dequantized(layouts.channels_first(pooled), source, layouts)


def _pick(node: Node, layouts: Layouts) -> Node | str | None:
    x = _source(node)
    if x is None:
        return None
    picked = pick(node, x.node, layouts)
    source: Any = node.args[0]
    return picked if isinstance(picked, str) else dequantized(picked, source, layouts)


def _alike(inputs: Sequence[object]) -> list[Node] | None:
    """Return the integers of `inputs` where all are quantized and stand for the same."""
    parts = [part for item in inputs if isinstance(part := operand(item), Operand)]
    if len(parts) < len(inputs) or any(not p.scale.same(parts[0].scale) for p in parts):
        return None
    return [part.node for part in parts]


def _extreme(node: Node, layouts: Layouts) -> Node | None:
    """Select the larger or smaller of integers that stand for the same."""
    parts = _alike(node.args)
    if parts is None:
        return None
    nodes, moved = layouts.common(parts)
    result = layouts.call(node.target, *nodes)
    source: Any = node.args[0]
    return dequantized(layouts.channels_first(result) if moved else result, source, layouts)


def _stack(node: Node, layouts: Layouts) -> Node | None:
    """Stack integers that all stand for the same."""
    inputs: Any = node.args[0]
    parts = _alike(inputs)
    if parts is None:
        return None
    stacked = layouts.call(node.target, parts, *node.args[1:])
    return dequantized(stacked, inputs[0], layouts)


def _cat(node: Node, layouts: Layouts) -> Node | None:
    """Concatenate integers that all stand for the same; `concatenate` is for others."""
    inputs: Any = node.args[0]
    parts = _alike(inputs)
    if parts is None:
        return None
    joined = join(parts, node, layouts)
    return dequantized(joined, inputs[0], layouts)


def join(nodes: Sequence[Node], cat: Node, layouts: Layouts) -> Node:
    """Concatenate `nodes` as `cat` does its arguments, images along the dimension as it lies."""
    rank = cat.meta["val"].dim()
    dim: Any = cat.args[1] if len(cat.args) > 1 else 0
    parts, moved = layouts.common(nodes)
    result = layouts.call(cat.target, parts, last(rank).index(dim % rank) if moved else dim)
    return layouts.channels_first(result) if moved else result


POOL = aten.max_pool2d_with_indices.default
SEVERAL = copies(Moves.SPLIT, Moves.UNBIND)
MOVING: dict[Any, Move] = {row.copy: _several if row.copy in SEVERAL else _one for row in TABLE}
MOVING |= dict.fromkeys(
    (
        aten.amax.default,
        aten.amin.default,
        aten.flip.default,
        aten.gather.default,
        aten.index.Tensor,
        aten.index_select.default,
        aten.pixel_shuffle.default,
        aten.pixel_unshuffle.default,
        aten.repeat.default,
        aten.roll.default,
    ),
    _one,
)
MOVING |= dict.fromkeys(RESHAPES, _reshape)
MOVING |= dict.fromkeys(PICKS, _pick)
MOVING |= dict.fromkeys((aten.maximum.default, aten.minimum.default), _extreme)
MOVING |= {
    SLICE: _slice,
    aten.constant_pad_nd.default: _pad,
    aten.cat.default: _cat,
    aten.stack.default: _stack,
    operator.getitem: _max_pool,
}
