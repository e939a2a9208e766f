# SPDX-License-Identifier: BSD-3-Clause
"""Sums, products, means and pools of int8 tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from etx_exir.integer.clamps import Clamped
from etx_exir.integer.layers import Row, output
from etx_exir.integer.layout import Layouts, is_image, last
from etx_exir.integer.lookup import INTEGERS, mapped
from etx_exir.integer.moves import join
from etx_exir.integer.scales import INT8, Operand, operand
from etx_exir.integer.windows import both, ends
from etx_exir.ir.constants import Constants
from etx_exir.ir.integer_ops import ADD, AVG_POOL, MEAN, MUL

aten = torch.ops.aten


def _pair(node: Node) -> tuple[Operand, Operand] | str:
    a, b = operand(node.args[0]), operand(node.args[1])
    if isinstance(a, str) or isinstance(b, str):
        return a if isinstance(a, str) else str(b)
    return a, b


def _elementwise(
    found: Clamped,
    target: Any,
    pair: tuple[Operand, Operand],
    numbers: tuple[Any, ...],
    layouts: Layouts,
) -> Node:
    nodes, moved = layouts.common([item.node for item in pair])
    result = layouts.call(target, *nodes, *numbers, *output(found.scale))
    return layouts.channels_first(result) if moved else result


def _add(sign: int) -> Row:
    def add(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
        pair = _pair(found.source)
        if isinstance(pair, str):
            return pair
        alpha = found.source.kwargs.get("alpha", 1)
        if not isinstance(alpha, (int, float)):
            return "alpha is computed at run time"
        a, b = (item.scale for item in pair)
        numbers = (
            a.scale / found.scale.scale,
            a.zero_point,
            sign * alpha * b.scale / found.scale.scale,
            b.zero_point,
        )
        return _elementwise(found, ADD, pair, numbers, layouts)

    return add


def _mul(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    pair = _pair(found.source)
    if isinstance(pair, str):
        return pair
    a, b = (item.scale for item in pair)
    numbers = (a.scale * b.scale / found.scale.scale, a.zero_point, b.zero_point)
    return _elementwise(found, MUL, pair, numbers, layouts)


def _sum(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    node, result = found.source, found.source.meta["val"]
    whole: Any = node.args[0]
    count = whole.meta["val"].numel() // max(result.numel(), 1)
    if not isinstance(count, int):
        return "how many numbers are added is known at run time only"
    finer = replace(found.scale, scale=found.scale.scale / max(count, 1))
    return _mean(replace(found, scale=finer), constants, layouts)


def _mean(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    node = found.source
    x = operand(node.args[0])
    if isinstance(x, str):
        return x
    rank = x.node.meta["val"].dim()
    given: Any = node.args[1] if len(node.args) > 1 else None
    dims = sorted({dim % rank for dim in given} if given else range(rank))
    keep = bool(node.args[2]) if len(node.args) > 2 else False
    source = x.node
    if is_image(source) and 0 not in dims and 1 not in dims and (keep or len(dims) == rank - 2):
        source = layouts.channels_last(source)
        dims = [last(rank).index(dim) for dim in dims]
    result = layouts.call(
        MEAN,
        source,
        dims,
        keep,
        x.scale.scale / found.scale.scale,
        x.scale.zero_point,
        *output(found.scale),
    )
    return layouts.channels_first(result) if keep and source is not x.node else result


def _pool(read: Callable[[Node], tuple[Any, ...] | str]) -> Row:
    def pool(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
        x = operand(found.source.args[0])
        window = read(found.source)
        if isinstance(x, str) or isinstance(window, str):
            return x if isinstance(x, str) else str(window)
        scale = x.scale.scale / found.scale.scale
        result = layouts.call(
            AVG_POOL,
            layouts.channels_last(x.node),
            *window,
            scale,
            x.scale.zero_point,
            *output(found.scale),
        )
        return layouts.channels_first(result)

    return pool


def _avg_pool(node: Node) -> tuple[Any, ...] | str:
    args: Any = (*node.args, *(None, [], 0, False, True, None)[len(node.args) - 1 :])
    image, size, stride, padding, ceil, include, divisor = args
    if divisor is not None:
        return "the average has a divisor of its own"
    kernel, padding = both(size), both(padding)
    stride = both(stride) if stride else kernel
    if not ceil:
        return kernel, stride, [*padding, *padding], bool(include)
    after = ends(image, node.meta["val"], kernel, stride, padding)
    if isinstance(after, str):
        return after
    beyond = [a - p for a, p in zip(after, padding, strict=True)]
    if include and any(padding) and max(beyond) > 0:
        return "the last windows count some of what is beyond the edge, and some not"
    return kernel, stride, [*padding, *after], bool(include) and max(beyond) <= 0


def _adaptive(node: Node) -> tuple[Any, ...] | str:
    image, size = node.args[0], both(node.args[1])
    assert isinstance(image, Node)
    sizes = image.meta["val"].shape[-2:]
    if image.meta["val"].dim() != 4 or any(
        not isinstance(n, int) or n % m for n, m in zip(sizes, size, strict=True)
    ):
        return "the windows of the average differ in size"
    kernel = [n // m for n, m in zip(sizes, size, strict=True)]
    return kernel, kernel, [0] * 4, True


def _cat(found: Clamped, constants: Constants, layouts: Layouts) -> Node | str:
    """Concatenate integers, mapped by a table where they stand for something else."""
    inputs: Any = found.source.args[0]
    parts = [part for item in inputs if isinstance(part := operand(item), Operand)]
    if len(parts) < len(inputs):
        return "an operand is not quantized"
    scale = found.scale
    nodes = []
    for part in parts:
        if part.scale.same(scale) and (scale.low, scale.high) == INT8:
            nodes.append(part.node)
            continue
        numbers = (INTEGERS.double() - part.scale.zero_point) * part.scale.scale
        table = torch.tensor([scale.quantize(float(n)) for n in numbers], dtype=torch.int8)
        nodes.append(mapped(part.node, table, f"{part.node.name}_rescaled", layouts))
    return join(nodes, found.source, layouts)


ARITHMETIC: dict[Any, Row] = {
    aten.cat.default: _cat,
    aten.add.Tensor: _add(1),
    aten.sub.Tensor: _add(-1),
    aten.mul.Tensor: _mul,
    aten.mean.dim: _mean,
    aten.sum.dim_IntList: _sum,
    aten.avg_pool2d.default: _pool(_avg_pool),
    aten._adaptive_avg_pool2d.default: _pool(_adaptive),
}
