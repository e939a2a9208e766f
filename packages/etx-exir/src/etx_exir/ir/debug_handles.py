# SPDX-License-Identifier: BSD-3-Clause
"""Debug handles: which nodes were made of the same node of the exported program.

A node's handle is a number from 1 that it shares with the nodes made of the same one. Handles
outlive decompositions, passes, branches and delegation.
"""

from __future__ import annotations

from itertools import count

from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.ir.control_flow_graphs import graph_modules

__all__ = ["HANDLE", "handle_of", "number_nodes"]

HANDLE = "debug_handle"


def number_nodes(program: ExportedProgram) -> None:
    """Give a handle to every node but inputs and outputs that has none, in nested graphs too."""
    nodes = [
        node
        for module in graph_modules(program.graph_module)
        for node in module.graph.nodes
        if node.op not in ("placeholder", "output")
    ]
    highest = max((handle_of(node) or 0 for node in nodes), default=0)
    known = {_ancestor(node): handle_of(node) for node in nodes if handle_of(node)}
    numbers = count(highest + 1)
    for node in nodes:
        if not handle_of(node):
            source = _ancestor(node)
            known[source] = known.get(source) or next(numbers)
            node.meta[HANDLE] = known[source]


def handle_of(node: Node) -> int | None:
    """Return the handle of `node`, None when it has none."""
    handle = node.meta.get(HANDLE)
    return handle if isinstance(handle, int) else None


def _ancestor(node: Node) -> tuple[str, int]:
    """Return name and graph of the oldest node that `node` was made of, itself for want of one."""
    sources = node.meta.get("from_node")
    if not sources:
        return node.name, id(node.graph)
    source = sources[-1]
    while source.from_node:
        source = source.from_node[-1]
    return source.name, source.graph_id
