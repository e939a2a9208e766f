# SPDX-License-Identifier: BSD-3-Clause
"""``y = f(w); ...; g(x, y)`` -> ``...; y = f(w); g(x, y)`` for a constant w that stays packed.

What is computed from constants in every call, such as dequantized weights, then takes memory just
before it is read, not all of it from the start.
"""

from __future__ import annotations

from torch import Tag, Tensor
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.passes.base import Pass


class DelayConstants(Pass):
    """Move what only depends on constants to just before its first use."""

    def apply(self, program: ExportedProgram) -> bool:
        constants = Constants(program)
        changed = False
        for module in graph_modules(program.graph_module):
            constants.graph = module.graph
            changed |= _delay(module.graph, constants)
        return changed


def _delay(graph: Graph, constants: Constants) -> bool:
    fixed: set[Node] = set()
    for node in graph.nodes:
        inputs = node.all_input_nodes
        known = all(i in fixed or constants.get(i) is not None for i in inputs)
        if inputs and known and _is_plain(node):
            fixed.add(node)
    changed = False
    for node in [node for node in reversed(graph.nodes) if node in fixed and node.users]:
        first = min(node.users)
        if first is not node.next:
            first.prepend(node)
            changed = True
    return changed


def _is_plain(node: Node) -> bool:
    """Tell whether a call has one tensor as its result and nothing else to do."""
    schema = getattr(node.target, "_schema", None)
    tags = getattr(node.target, "tags", ())
    return (
        node.op == "call_function"
        and isinstance(node.meta.get("val"), Tensor)
        and schema is not None
        and not schema.is_mutable
        and Tag.nondeterministic_seeded not in tags
    )
