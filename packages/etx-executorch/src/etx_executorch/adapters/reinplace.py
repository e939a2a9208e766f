# SPDX-License-Identifier: BSD-3-Clause
"""Operators that write their result into an argument that nothing reads any more, and back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.passes.base import name_outputs
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from etx_executorch.adapters.operators import edge_op, torch_op

__all__ = ["DEFAULT_INPLACEABLE_OPS", "functionalize", "is_inplace_node", "reinplace_pass"]

aten = torch.ops.aten
DEFAULT_INPLACEABLE_OPS: set[Any] = {edge_op(aten.index_put.default)}


def reinplace_pass(
    ep: ExportedProgram, ops_to_inplace: Collection[Any] | None = None
) -> ExportedProgram:
    """Let calls of `ops_to_inplace` work in place, in the program itself, where no one notices.

    A file has the same kernels either way: its results lie in place wherever that is safe.
    """
    given = DEFAULT_INPLACEABLE_OPS if ops_to_inplace is None else ops_to_inplace
    chosen = {torch_op(op) for op in given}
    state = _state(ep)
    nodes = list(ep.graph.nodes)
    position = {node: index for index, node in enumerate(nodes)}
    for node in nodes:
        if node.op == "call_function" and torch_op(node.target) in chosen:
            twin = _in_place(torch_op(node.target))
            if twin is not None and _is_safe(node, position, state):
                node.target = edge_op(twin)
    ep.graph_module.recompile()
    return ep


def _state(ep: ExportedProgram) -> dict[str, str]:
    """Return, by placeholder of a buffer that changes, the node of its new value."""
    signature = ep.graph_signature
    targets = {target: name for name, target in signature.inputs_to_buffers.items()}
    written = [spec for spec in signature.output_specs if spec.kind is OutputKind.BUFFER_MUTATION]
    return {targets[spec.target]: spec.arg.name for spec in written}


def _in_place(op: OpOverload) -> OpOverload | None:
    packet = getattr(getattr(torch.ops, op.namespace), f"{op._opname}_", None)
    twin = getattr(packet, op._overloadname, None)
    return twin if isinstance(twin, OpOverload) and twin._schema.is_mutable else None


def _is_safe(node: Node, position: dict[Node, int], state: dict[str, str]) -> bool:
    base = node.args[0] if node.args else None
    if not isinstance(base, Node) or any(position[user] > position[node] for user in base.users):
        return False
    old, new = base.meta.get("val"), node.meta.get("val")
    if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
        return False
    if (old.shape, old.dtype) != (new.shape, new.dtype) or node.all_input_nodes.count(base) > 1:
        return False
    if base.op == "placeholder":
        return state.get(base.name) == node.name
    return base.op == "call_function"


def is_inplace_node(node: Node) -> bool:
    """Tell whether a call writes to an argument rather than to memory that is made for it."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return False
    return not any(argument.is_out for argument in schema.arguments)


def functionalize(program: ExportedProgram) -> None:
    """Undo `reinplace_pass`: operators that work in place return new tensors again."""
    for module in graph_modules(program.graph_module):
        for node in module.graph.nodes:
            _undo(node)
        module.recompile()
    name_outputs(program)


def _undo(node: Node) -> None:
    target = torch_op(node.target)
    if isinstance(target, OpOverload) and is_inplace_node(node):
        name = target._opname.removesuffix("_")
        packet = getattr(getattr(torch.ops, target.namespace), name, None)
        twin = getattr(packet, target._overloadname, None)
        node.target = twin if isinstance(twin, OpOverload) else target
