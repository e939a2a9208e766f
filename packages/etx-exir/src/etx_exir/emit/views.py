# SPDX-License-Identifier: BSD-3-Clause
"""Operators whose result can be the argument's own memory, and at which byte of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from etx_exir.ir.layout import Shape

aten = torch.ops.aten
ALIGNMENT = 16

Aliases = list[int] | None


def _targets(*names: str) -> tuple[Any, ...]:
    found = []
    for name in names:
        packet, _, overload = name.partition(".")
        if hasattr(aten, packet) and overload in getattr(aten, packet).overloads():
            found.append(getattr(getattr(aten, packet), overload))
    return tuple(found)


SAME_ORDER = frozenset(
    _targets(
        "view_copy.default",
        "view.default",
        "_unsafe_view.default",
        "reshape.default",
        "_reshape_copy.default",
        "squeeze_copy.default",
        "squeeze_copy.dim",
        "squeeze_copy.dims",
        "squeeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "unsqueeze_copy.default",
        "unsqueeze.default",
        "alias_copy.default",
        "alias.default",
        "detach_copy.default",
        "detach.default",
        "lift_fresh_copy.default",
    )
)
EXPAND = frozenset(_targets("expand_copy.default", "expand.default"))
PERMUTE = frozenset(_targets("permute_copy.default", "permute.default"))
TRANSPOSE = frozenset(_targets("transpose_copy.int", "transpose.int", "t_copy.default"))
SELECT = frozenset(_targets("select_copy.int", "select.int"))
SLICE = frozenset(_targets("slice_copy.Tensor", "slice.Tensor"))
SPLIT = frozenset(_targets("split_copy.Tensor", "split_with_sizes_copy.default"))
UNBIND = frozenset(_targets("unbind_copy.int", "unbind.int"))

Rule = Callable[[Node, Shape, list[Shape]], Aliases]


def _same_order(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    return [0]


def _expand(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    return [0] if source.nbytes == results[0].nbytes else None


def _moves_only_ones(source: Shape, order: list[int]) -> Aliases:
    kept = [d for d in order if source.sizes[d] != 1]
    return [0] if kept == sorted(kept) else None


def _permute(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    rank = len(source.sizes)
    return _moves_only_ones(source, [int(d) % rank for d in node.args[1]])  # type: ignore[union-attr, arg-type]


def _transpose(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    rank = len(source.sizes)
    order = list(range(rank))
    if rank:
        a, b = node.args[1:3] if len(node.args) > 2 else (0, rank - 1)
        a, b = int(a) % rank, int(b) % rank  # type: ignore[arg-type]
        order[a], order[b] = order[b], order[a]
    return _moves_only_ones(source, order)


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
    position = 1 if node.target in UNBIND else 2
    if _outermost(node, source, position) is None:
        return None
    offsets, at = [], 0
    for result in results:
        offsets.append(at)
        at += result.nbytes
    return _aligned(offsets)


def _aligned(offsets: list[int]) -> Aliases:
    return offsets if all(offset % ALIGNMENT == 0 for offset in offsets) else None


RULES: dict[Any, Rule] = {
    **dict.fromkeys(SAME_ORDER, _same_order),
    **dict.fromkeys(EXPAND, _expand),
    **dict.fromkeys(PERMUTE, _permute),
    **dict.fromkeys(TRANSPOSE, _transpose),
    **dict.fromkeys(SELECT, _select),
    **dict.fromkeys(SLICE, _slice),
    **dict.fromkeys(SPLIT, _pieces),
    **dict.fromkeys(UNBIND, _pieces),
}


def aliases(node: Node, source: Shape, results: list[Shape]) -> Aliases:
    """Return the byte of the argument at which each result starts; None when memory must move."""
    rule = RULES.get(node.target)
    if rule is None or source.dynamic or any(result.dynamic for result in results):
        return None
    if not source.contiguous or not all(result.contiguous for result in results):
        return None
    if any(result.itemsize != source.itemsize for result in results):
        return None
    return rule(node, source, results)
