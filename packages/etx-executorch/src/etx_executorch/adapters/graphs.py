# SPDX-License-Identifier: BSD-3-Clause
"""Questions about graphs: what is nested in them, what is delegated."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import etx_exir
from etx_exir import LoweredBackendModule, executorch_call_delegate
from etx_exir.delegation.info import DelegationBreakdown
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

__all__ = [
    "DelegationInfo",
    "bfs_trace_with_node_process",
    "contains_any_call_fn_target_op",
    "format_delegated_graph",
    "get_cond_while_submodules",
    "get_control_flow_submodules",
    "get_delegated_payload",
    "get_delegates",
    "get_delegation_info",
    "get_lowered_backend_modules",
    "get_lowered_submodules",
    "get_non_lowered_nodes",
    "get_scan_submodules",
    "is_identical_graph",
    "is_shape_dynamic",
    "print_delegated_graph",
]

Nested = list[tuple[str, GraphModule, Node]]


def get_control_flow_submodules(graph_module: GraphModule) -> Nested:
    """List the graphs that calls of this graph run, with the call."""
    return list(_nested(graph_module))


def get_cond_while_submodules(graph_module: GraphModule) -> Nested:
    """List the graphs of branches and of `while` loops, with the call."""
    return [item for item in _nested(graph_module) if _name(item[2]) in ("cond", "while_loop")]


def get_scan_submodules(graph_module: GraphModule) -> Nested:
    """List the graphs of scans, with the call."""
    return [item for item in _nested(graph_module) if _name(item[2]) == "scan"]


def _nested(graph_module: GraphModule) -> Iterator[tuple[str, GraphModule, Node]]:
    for node in graph_module.graph.find_nodes(op="get_attr"):
        child = getattr(graph_module, str(node.target), None)
        if isinstance(child, GraphModule):
            yield str(node.target), child, next(iter(node.users))


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def bfs_trace_with_node_process(gm: GraphModule, node_op: Callable[[Node], None]) -> None:
    """Call a function with each node, outer graphs first."""
    pending = [gm]
    while pending:
        module = pending.pop(0)
        for node in list(module.graph.nodes):
            node_op(node)
        pending += [child for _, child, _ in _nested(module)]


def contains_any_call_fn_target_op(graph_module: GraphModule, ops: Collection[Any]) -> bool:
    """Tell whether the graph or one nested in it calls one of `ops`."""
    found = []

    def note(node: Node) -> None:
        found.append(node.op == "call_function" and node.target in ops)

    bfs_trace_with_node_process(graph_module, note)
    return any(found)


def get_lowered_submodules(
    graph_module: GraphModule,
) -> list[tuple[str, LoweredBackendModule, Node]]:
    """List the delegates of this graph, with the node that holds each."""
    return [
        (str(node.target), child, node)
        for node in graph_module.graph.find_nodes(op="get_attr")
        if isinstance(child := getattr(graph_module, str(node.target), None), LoweredBackendModule)
    ]


def get_lowered_backend_modules(graph_module: GraphModule) -> list[LoweredBackendModule]:
    """List the delegates of this graph."""
    return [lowered for _, lowered, _ in get_lowered_submodules(graph_module)]


def get_delegates(graph: Graph) -> list[Node]:
    """List the nodes that hold a delegate."""
    return [node for node in graph.nodes if node.op == "get_attr" and "lowered" in node.name]


def get_non_lowered_nodes(graph: Graph) -> list[Node]:
    """List the calls that no delegate runs."""
    calls = (node for node in graph.nodes if node.op == "call_function")
    delegates = set(graph.find_nodes(op="call_function", target=executorch_call_delegate))
    return [n for n in calls if n not in delegates and not set(n.all_input_nodes) & delegates]


def format_delegated_graph(graph_module: GraphModule) -> str:
    """Return the graph as text, and that of each delegate below it."""
    parts = [str(graph_module.graph)]
    for name, lowered, _ in get_lowered_submodules(graph_module):
        parts.append(f"{name} ({lowered.backend_id}):")
        parts.append(str(lowered.original_module.graph))
    return "\n".join(parts)


def print_delegated_graph(graph_module: GraphModule) -> None:
    """Print that text."""
    print(format_delegated_graph(graph_module))


def get_delegated_payload(graph_module: GraphModule) -> dict[str, tuple[str, list[Any], bytes]]:
    """Return backend, options and blob of each delegate of this graph, by name."""
    return {
        name: (lowered.backend_id, lowered.compile_specs, lowered.processed_bytes)
        for name, lowered, _ in get_lowered_submodules(graph_module)
    }


def is_identical_graph(graph_left: GraphModule, graph_right: GraphModule) -> bool:
    """Tell whether two graphs have the same nodes in the same order, whatever their names."""
    if len(graph_left.graph.nodes) != len(graph_right.graph.nodes):
        return False
    twin: dict[Node, Node] = {}
    for left, right in zip(graph_left.graph.nodes, graph_right.graph.nodes, strict=True):
        if left.op != right.op or len(left.users) != len(right.users):
            return False
        if left.op.startswith("call_") and left.target != right.target:
            return False
        arguments = map_arg((left.args, left.kwargs), lambda node: twin[node])
        if arguments != (right.args, right.kwargs):
            return False
        twin[left] = right
    return True


def is_shape_dynamic(node: Node) -> bool:
    """Tell whether a size of the node's tensor is not a number."""
    value = node.meta.get("val")
    return any(not isinstance(size, int) for size in getattr(value, "shape", ()))


class DelegationInfo(etx_exir.DelegationInfo):
    """ETX's counts, with ExecuTorch's DataFrame."""

    def get_operator_delegation_dataframe(self) -> Any:
        """Return a row an operator and their sum; it needs pandas."""
        frame = importlib.import_module("pandas").DataFrame
        rows = self.get_operator_delegation_rows()
        totals = DelegationBreakdown(
            "Total", self.num_delegated_nodes, self.num_non_delegated_nodes
        )
        named = [
            {
                "op_type": row.op_type,
                "occurrences_in_delegated_graphs": row.delegated,
                "occurrences_in_non_delegated_graphs": row.non_delegated,
            }
            for row in (*rows, totals)
        ]
        return frame(named)


def get_delegation_info(graph_module: GraphModule) -> DelegationInfo:
    """Count the operators of a graph by whether a delegate runs them."""
    return DelegationInfo(**vars(etx_exir.get_delegation_info(graph_module)))
