# SPDX-License-Identifier: BSD-3-Clause
"""``relu_(x)`` is ``relu(x)`` where nothing else reads x: without tracing the program again."""

from __future__ import annotations

from typing import Any

import torch
from etx_exir.lower.copy_program import copy_program
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

__all__ = ["mutates", "without_simple_writes"]

FRESH = ("aten.conv", "aten.batch_norm", "aten.linear", "aten.add.", "aten.mul.", "aten.cat")


def mutates(node: Node) -> bool:
    """Whether a node calls an operator that writes to an argument."""
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def without_simple_writes(program: ExportedProgram) -> ExportedProgram | None:
    """Return a copy that writes nothing in place; None where that takes more than renaming."""
    if any(isinstance(m, GraphModule) for m in program.graph_module.children()):
        return None
    if any(mutates(node) and _plain(node) is None for node in program.graph.nodes):
        return None
    result = copy_program(program)
    for node in result.graph.nodes:
        if mutates(node):
            node.target = _plain(node)
    result.graph_module.recompile()
    return result


def _plain(node: Node) -> OpOverload | None:
    """Return the operator that computes the same, where only `node` sees what it writes to."""
    source: Any = node.args[0] if node.args else None
    target = node.target
    if not isinstance(target, OpOverload) or not isinstance(source, Node):
        return None
    if len(source.users) > 1 or not str(source.target).startswith(FRESH):
        return None
    space, _, name = target._schema.name.partition("::")
    written = [a.name for a in target._schema.arguments if a.is_write]
    if not name.endswith("_") or written != [target._schema.arguments[0].name]:
        return None
    packet = getattr(getattr(torch.ops, space), name[:-1], None)
    found = getattr(packet, target._overloadname, None)
    return found if isinstance(found, OpOverload) else None
