# SPDX-License-Identifier: BSD-3-Clause
"""Shapes as arguments: static sizes are numbers, the others nodes, at most one is -1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten

Size = int | Node


def value_of(item: Any) -> Any:
    """Return the value behind an argument, be it a node or a number."""
    return item.meta["val"] if isinstance(item, Node) else item


def size(graph: Graph, node: Node, dim: int) -> Size:
    """Return the size of `dim`: a number, or a node that reads it at run time."""
    extent = node.meta["val"].shape[dim]
    if isinstance(extent, int):
        return extent
    call = graph.call_function(aten.sym_size.int, (node, dim % node.meta["val"].dim()))
    call.meta["val"] = extent
    return call


def sizes(graph: Graph, node: Node) -> list[Size]:
    """Return all sizes of `node`."""
    return [size(graph, node, dim) for dim in range(node.meta["val"].dim())]


def with_inferred(shape: Sequence[Size]) -> list[Size]:
    """Return `shape` with -1 for its only size that is not static, if there is just one."""
    nodes = [index for index, item in enumerate(shape) if isinstance(item, Node)]
    if len(nodes) != 1 or -1 in shape:
        return list(shape)
    return [-1 if index == nodes[0] else item for index, item in enumerate(shape)]


def static_shape(value: torch.Tensor) -> list[int] | None:
    """Return the shape of `value` with -1 for its only symbolic size; None when it has more."""
    shape = [extent if isinstance(extent, int) else -1 for extent in value.shape]
    return shape if shape.count(-1) <= 1 else None


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for certain; asks for no guard."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    expr_a = a.node.expr if isinstance(a, torch.SymInt) else a
    expr_b = b.node.expr if isinstance(b, torch.SymInt) else b
    return bool(expr_a == expr_b)


def same_shape(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have the same shape for certain."""
    return a.dim() == b.dim() and all(map(same_size, a.shape, b.shape))
