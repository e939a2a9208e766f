# SPDX-License-Identifier: BSD-3-Clause
"""``a = f(x); b = f(x)`` -> ``a = b = f(x)`` (CSE); each symbolic size is read once."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass

PYTHON_OPERATORS = frozenset(
    getattr(operator, name) for name in dir(operator) if not name.startswith("_")
)


class CommonSubexpressions(NodePass):
    """Compute equal expressions once."""

    def calls(self, graph: Graph) -> list[Node]:
        self.first: dict[Any, Node] = {}
        self.returned = set(graph.output_node().all_input_nodes)
        return [node for node in graph.nodes if _is_pure(node)]

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        first = self.first.setdefault(_key(node), node)
        return None if first is node or node in self.returned else first


def _is_pure(node: Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target in PYTHON_OPERATORS:
        return True
    return (
        isinstance(node.target, OpOverload)
        and torch.Tag.nondeterministic_seeded not in node.target.tags
        and not node.target._schema.is_mutable
    )


def _key(node: Node) -> Any:
    value = node.meta.get("val")
    if isinstance(value, torch.SymInt):
        return torch.SymInt, value.node.expr
    return node.target, _frozen(node.args), _frozen(node.kwargs)


def _frozen(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return tuple(map(_frozen, item))
    if isinstance(item, dict):
        return tuple(sorted((key, _frozen(value)) for key, value in item.items()))
    if isinstance(item, Node):
        return item
    if isinstance(item, slice):
        return (slice, _frozen((item.start, item.stop, item.step)))
    return type(item), repr(item)
