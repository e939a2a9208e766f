# SPDX-License-Identifier: BSD-3-Clause
"""Programs and graphs as text."""

from __future__ import annotations

import pprint
import sys
from typing import Any, TextIO

from etx_schema import FrameList, Program
from torch.fx import Graph, Node

__all__ = [
    "add_cursor_to_graph",
    "inspect_node",
    "pretty_print",
    "pretty_print_stacktraces",
    "print_program",
]


def pretty_print(obj: Any, indent: int = 0, out: TextIO | None = None) -> None:
    """Print tables of a program field by field."""
    text = pprint.pformat(obj, width=100)
    print("\n".join(" " * indent + line for line in text.splitlines()), file=out or sys.stdout)


def print_program(
    program: Program,
    show_meminfo: bool = True,
    mark_dynamic_shape_tensor: bool = False,
    out: TextIO | None = None,
) -> None:
    """Print the tables of a program; `dump_executorch_program` of its manager is shorter."""
    pretty_print(program, out=out)


def pretty_print_stacktraces(obj: FrameList) -> str:
    """Return the frames of an instruction as Python prints a traceback."""
    lines = ["Traceback (most recent call last):"]
    for frame in obj.items or ():
        lines.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        lines.append(f"    {frame.context}")
    return "\n".join(lines) + "\n"


def add_cursor_to_graph(graph: Graph, finding_node: Node) -> str:
    """Return the graph as text with an arrow at a node."""
    rows = [
        ("--> " if node is finding_node else "    ") + (node.format_node() or node.name)
        for node in graph.nodes
    ]
    return "\n".join(rows)


def inspect_node(graph: Graph, node: Node) -> str:
    """Return the graph with an arrow at a node, and where the node comes from."""
    return f"{add_cursor_to_graph(graph, node)}\n{node.meta.get('stack_trace') or ''}"
