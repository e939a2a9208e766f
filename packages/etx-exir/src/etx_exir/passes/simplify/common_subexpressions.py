# SPDX-License-Identifier: BSD-3-Clause
"""``a = f(x); b = f(x)`` -> ``a = b = f(x)`` (CSE); each symbolic size is read once."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.passes.base import Pass

PYTHON_OPERATORS = frozenset(
    getattr(operator, name) for name in dir(operator) if not name.startswith("_")
)


class CommonSubexpressions(Pass):
    """Compute equal expressions once."""

    def apply(self, program: ExportedProgram) -> bool:
        changed = False
        for module in graph_modules(program.graph_module):
            changed |= _merge(module)
        return changed


def _merge(module: GraphModule) -> bool:
    seen: dict[Any, Node] = {}
    changed = False
    returned = set(module.graph.output_node().all_input_nodes)
    for node in list(module.graph.nodes):
        if node.op == "get_attr" and not isinstance(getattr(module, node.target), GraphModule):
            continue
        if not _is_pure(node):
            continue
        key = _key(node)
        first = seen.setdefault(key, node)
        if first is node or node in returned:
            continue
        node.replace_all_uses_with(first)
        module.graph.erase_node(node)
        changed = True
    return changed


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
