# SPDX-License-Identifier: BSD-3-Clause
"""Programs with operators of the Edge dialect, as users see them, or torch's, as ETX does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.lower.copy_program import copy_program
from etx_exir.passes import Pass
from etx_exir.passes.base import name_outputs
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule

from etx_executorch.adapters.export_pass import ExportedProgramPassBase
from etx_executorch.adapters.operators import EdgeOpOverload, edge_op, torch_op
from etx_executorch.adapters.reinplace import functionalize

__all__ = ["in_edge", "name_calls", "plain", "to_edge_ops", "to_torch_ops"]

KEPT = ("aten::sym_", "aten::_assert", "prim::")


def to_edge_ops(module: GraphModule) -> None:
    """Give the calls of a graph and those nested in it the operators of the Edge dialect."""
    _retarget(module, _edge)


def to_torch_ops(module: GraphModule) -> None:
    """Give the calls of a graph and those nested in it torch's operators."""
    _retarget(module, torch_op)


def _edge(target: Any) -> Any:
    if not isinstance(target, OpOverload) or isinstance(target, EdgeOpOverload):
        return target
    return target if target._name.startswith(KEPT) else edge_op(target)


def _retarget(root: GraphModule, change: Callable[[Any], Any]) -> None:
    for module in graph_modules(root):
        changed = False
        for node in module.graph.nodes:
            target = change(node.target) if node.op == "call_function" else node.target
            if target is not node.target:
                node.target = target
                changed = True
        if changed:
            module.recompile()


def name_calls(program: ExportedProgram) -> None:
    """Name each call after its operator, `aten_relu_default`, as passes and partitioners expect."""
    for module in graph_modules(program.graph_module):
        for node in module.graph.nodes:
            name = getattr(node.target, "__name__", "").replace(".", "_").lower()
            if isinstance(node.target, EdgeOpOverload) and not node.name.startswith(name):
                node._rename(name)
        module.recompile()
    name_outputs(program)


def plain(program: ExportedProgram) -> ExportedProgram:
    """Return a copy with torch's operators, none of which works in place."""
    result = copy_program(program)
    to_torch_ops(result.graph_module)
    functionalize(result)
    return result


def in_edge(passes: Any) -> list[Any]:
    """Return passes that find, and leave, operators of the Edge dialect; ETX's find torch's."""
    single = isinstance(passes, Pass) or callable(passes)
    listed: Sequence[Any] = [passes] if single else list(passes or ())
    found: list[Any] = []
    for item in listed:
        own = isinstance(item, Pass) and not isinstance(item, ExportedProgramPassBase)
        found += [to_torch_ops if own else to_edge_ops, item]
    return [*found, to_edge_ops]
