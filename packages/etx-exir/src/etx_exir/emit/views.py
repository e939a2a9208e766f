# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose result can be the argument's own memory, and at which byte of it."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch.fx import Node

from etx_exir.ir.layout import Shape
from etx_exir.ir.ops import MOVES_OF, Moves, permutation

ALIGNMENT = 16

Aliases = list[int] | None


Rule = Callable[[Node, Shape, list[Shape]], Aliases]


def _same_order(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    return [0]


def _expand(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    return [0] if source.nbytes == results[0].nbytes else None


def _permute(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    kept = [dim for dim in permutation(node) if source.sizes[dim] != 1]
    return [0] if kept == sorted(kept) else None


def _outermost(node: Node, source: Shape, position: int = 1) -> tuple[int, int] | None:
    """Return the dimension that `node` cuts and the bytes of one row, when it is the outermost."""
    dim = node.args[position] if len(node.args) > position else node.kwargs.get("dim", 0)
    if not isinstance(dim, int) or not source.sizes:
        return None
    dim %= len(source.sizes)
    if any(size != 1 for size in source.sizes[:dim]):
        return None
    return dim, math.prod(source.sizes[dim + 1 :]) * source.itemsize


def _select(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    cut = _outermost(node, source)
    index = node.args[2]
    if cut is None or not isinstance(index, int):
        return None
    return _aligned([(index % source.sizes[cut[0]]) * cut[1]])


def _slice(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    cut = _outermost(node, source)
    start, step = (*node.args[2:3], None)[0], (*node.args[4:5], 1)[0]
    if cut is None or step != 1 or not isinstance(start, (int, type(None))):
        return None
    size = source.sizes[cut[0]]
    first = 0 if start is None else start
    first = min(max(first + size if first < 0 else first, 0), size)
    return _aligned([first * cut[1]])


def _pieces(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    position = 1 if MOVES_OF[node.target] is Moves.UNBIND else 2
    if _outermost(node, source, position) is None:
        return None
    offsets, at = [], 0
    for result in results:
        offsets.append(at)
        at += result.nbytes
    return _aligned(offsets)


def _aligned(offsets: list[int]) -> Aliases:
    return offsets if all(offset % ALIGNMENT == 0 for offset in offsets) else None


RULES: dict[Moves, Rule] = {
    Moves.SAME: _same_order,
    Moves.RESHAPE: _same_order,
    Moves.EXPAND: _expand,
    Moves.PERMUTE: _permute,
    Moves.SELECT: _select,
    Moves.SLICE: _slice,
    Moves.SPLIT: _pieces,
    Moves.UNBIND: _pieces,
}
ALIASING = frozenset(op for op, moves in MOVES_OF.items() if moves in RULES)
SAME_ORDER = frozenset(op for op in ALIASING if RULES[MOVES_OF[op]] is _same_order)


def aliases(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    """Return the byte of the argument at which each result starts; None when memory must move."""
    if node.target not in ALIASING or source.dynamic or any(result.dynamic for result in results):
        return None
    if not source.contiguous or not all(result.contiguous for result in results):
        return None
    if any(result.itemsize != source.itemsize for result in results):
        return None
    return RULES[MOVES_OF[node.target]](node, source, results)
