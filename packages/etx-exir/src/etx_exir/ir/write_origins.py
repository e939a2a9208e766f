# SPDX-License-Identifier: BSD-3-Clause
"""Where the copies come from that no node of a functional graph stands for.

State and inputs that the model writes to get their new values when a method ends. What wrote them
last in the exported program, ``self.state.copy_(x)``, may leave no node behind.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from etx_exir.ir.provenance import is_known, nearest_known

__all__ = ["note_writers", "returning", "writing"]

WRITER = "etx_writer"
"""At a placeholder, the origin of what writes to it last."""
TOLD = ("stack_trace", "nn_module_stack")


def note_writers(source: ExportedProgram, result: ExportedProgram) -> None:
    """Note at the placeholders of `result`, made of `source`, where new values are written."""
    found = {name: _origin(node) for name, node in _writers(source)}
    for name, node in _placeholders(result):
        if name in found:
            node.meta[WRITER] = found[name]


def writing(placeholder: Node, value: Any) -> Node | None:
    """Return a node, of no graph, that says where `value` is written to `placeholder`."""
    told = placeholder.meta.get(WRITER) or _origin_of_result(value)
    return _standing_for(torch.ops.aten.copy_.default, told)


def returning(value: Any) -> Node | None:
    """Return a node, of no graph, that says where a copy of `value` comes from."""
    return _standing_for(torch.ops.aten.clone.default, _origin_of_result(value))


def _standing_for(op: OpOverload, told: Mapping[str, Any]) -> Node | None:
    if not told:
        return None
    node = Graph().call_function(op)
    node.meta.update(told)
    return node


def _origin_of_result(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Node) or value.op != "call_function":
        return {}
    known = nearest_known(value)
    return _origin(known) if is_known(known) else {}


def _origin(node: Node) -> Mapping[str, Any]:
    return {key: node.meta[key] for key in TOLD if node.meta.get(key)}


def _placeholders(program: ExportedProgram) -> Iterator[tuple[str, Node]]:
    nodes = program.graph.find_nodes(op="placeholder")
    for spec, node in zip(program.graph_signature.input_specs, nodes, strict=True):
        yield str(spec.target or node.name), node


def _writers(program: ExportedProgram) -> Iterator[tuple[str, Node]]:
    """Yield for what `program` writes to each node that does, in their order."""
    names = {node: name for name, node in _placeholders(program)}
    outputs: Any = program.graph.output_node().args[0]
    for spec, value in zip(program.graph_signature.output_specs, outputs, strict=True):
        if "MUTATION" in spec.kind.name and isinstance(value, Node) and is_known(value):
            yield str(spec.target), value
    for root, node in _writes(program.graph_module, {node: node for node in names}):
        yield names[root], node


def _writes(module: GraphModule, roots: dict[Node, Node]) -> Iterator[tuple[Node, Node]]:
    """Yield each node that writes to a value of `roots`, or to a view of one, after its root."""
    for node in module.graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            for inner, given in _nested(module, node):
                pairs = zip(inner.graph.find_nodes(op="placeholder"), given, strict=False)
                yield from _writes(
                    inner, {own: roots[item] for own, item in pairs if item in roots}
                )
        for value, writes in _aliased(node):
            if value in roots:
                roots.setdefault(node, roots[value])
                if writes:
                    yield roots[value], node


def _nested(module: GraphModule, node: Node) -> Iterator[tuple[GraphModule, list[Node]]]:
    """Yield the graphs that `node` runs, as those under `no_grad`, each with its operands."""
    leaves = [item for item in pytree.tree_leaves(node.args) if isinstance(item, Node)]
    graphs = {
        item: graph
        for item in leaves
        if item.op == "get_attr"
        and isinstance(graph := getattr(module, str(item.target), None), GraphModule)
    }
    for place, item in enumerate(leaves):
        if item in graphs:
            yield graphs[item], [other for other in leaves[place:] if other not in graphs]


def _aliased(node: Node) -> Iterator[tuple[Node, bool]]:
    """Yield what the result of `node` may be a view of, and whether `node` writes to it."""
    if node.target is operator.getitem:
        yield node.all_input_nodes[0], False
    if not isinstance(node.target, OpOverload):
        return
    for place, argument in enumerate(node.target._schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
        if argument.alias_info is not None:
            items = given if isinstance(given, (list, tuple)) else [given]
            yield from ((i, argument.alias_info.is_write) for i in items if isinstance(i, Node))
