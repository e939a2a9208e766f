# SPDX-License-Identifier: BSD-3-Clause
"""``d = dequantize(q); f(d); g(d)`` -> ``f(dequantize(q)); g(dequantize(q))`` for a while.

With a dequantization of its own each user can be delegated on its own, and what crosses the border
of a partition is the small quantized tensor. Copies that end in one place are joined again.
"""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Graph, Node

from etx_exir.delegation.backend import DELEGATION_TAG
from etx_exir.ir.control_flow_graphs import graph_modules

__all__ = ["join_dequantize", "split_dequantize"]

PREFIXES = ("quantized_decomposed::dequantize", "torchao::dequantize")


def split_dequantize(program: ExportedProgram) -> None:
    """Give every user of a dequantized tensor a dequantization of its own."""
    for module in graph_modules(program.graph_module):
        for node in list(module.graph.nodes):
            if _is_dequantize(node):
                _split(module.graph, node)


def _is_dequantize(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.name.startswith(PREFIXES)


def _split(graph: Graph, node: Node) -> None:
    for user in list(node.users)[1:]:
        with graph.inserting_after(node):
            copy = graph.node_copy(node)
        user.replace_input_with(node, copy)


def join_dequantize(program: ExportedProgram) -> None:
    """Make those copies one again that lie in the same partition, or all outside."""
    for module in graph_modules(program.graph_module):
        first: dict[object, Node] = {}
        for node in list(module.graph.nodes):
            if not _is_dequantize(node):
                continue
            tag = node.meta.get(DELEGATION_TAG)
            twin = first.setdefault((node.target, node.args, repr(node.kwargs), tag), node)
            if twin is not node:
                node.replace_all_uses_with(twin)
                module.graph.erase_node(node)
