# SPDX-License-Identifier: BSD-3-Clause
"""``part(cat(a, b, …))`` -> ``a``, ``cat(parts of x in order)`` -> ``x``; each up to a view."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.analysis.element_origin import PARTS, chain_above, is_static, move, numbered
from etx_exir.analysis.shapes import same_shape, same_size
from etx_exir.ir.mutable_state import is_state
from etx_exir.ir.ops import VIEW
from etx_exir.passes.base import NodePass

aten = torch.ops.aten

JOINS: dict[Any, Any] = {aten.cat.default: torch.cat, aten.stack.default: torch.stack}


class ForwardParts(NodePass):
    """Read the operand itself where just one of those put together is taken out again."""

    targets = (*JOINS, *PARTS)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        if not is_static(node):
            return None
        source = self._joined(node) if node.target in JOINS else _part(node)
        if source is None or source.meta["val"].dtype != node.meta["val"].dtype:
            return None
        if is_state(source, self.program):
            return "the copy holds the value from before a write"
        if same_shape(source.meta["val"], node.meta["val"]):
            return source
        return graph.call_function(VIEW, (source, list(node.meta["val"].shape)))

    def _joined(self, node: Node) -> Node | None:
        """Return what all operands of a join are parts of, if together they are all of it."""
        operands = _operands(node)
        sources = {chain_above(operand)[0] for operand in operands}
        source = sources.pop()
        if sources or source in operands or not is_static(source):
            return None
        numbers = numbered(source)
        if not same_size(numbers.numel(), node.meta["val"].numel()):
            return None
        parts = [move(numbers, chain_above(operand)[1]) for operand in operands]
        return source if _in_order(_join(node, parts)) else None


def _part(node: Node) -> Node | None:
    """Return the operand of a join whose elements, all and in order, `node` is."""
    join, chain = chain_above(node)
    if join.target not in JOINS or not is_static(join):
        return None
    operands = _operands(join)
    if not all(is_static(operand) for operand in operands):
        return None
    sizes = [operand.meta["val"].numel() for operand in operands]
    numbers = [numbered(operand) + sum(sizes[:index]) for index, operand in enumerate(operands)]
    found = move(_join(join, numbers), chain).reshape(-1)
    for index, operand in enumerate(operands):
        if found.numel() == sizes[index] and torch.equal(found, numbers[index].reshape(-1)):
            return operand
    return None


def _operands(join: Node) -> list[Node]:
    tensors: Any = join.args[0]
    return list(tensors)


def _join(node: Node, parts: list[Tensor]) -> Tensor:
    target: Any = node.target
    result: Tensor = JOINS[target](parts, *node.args[1:], **node.kwargs)
    return result


def _in_order(numbers: Tensor) -> bool:
    flat = numbers.reshape(-1)
    return torch.equal(flat, torch.arange(flat.numel(), dtype=flat.dtype))
