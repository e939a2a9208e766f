# SPDX-License-Identifier: BSD-3-Clause
"""``with_effects(token, op, x)`` -> ``op(x)``: what is executed in order needs no tokens.

Checks that return nothing, such as that of `torch.linalg.inv`, are dropped as assertions are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

__all__ = ["remove_tokens"]

WITH_EFFECTS = torch.ops.higher_order.with_effects


def remove_tokens(program: ExportedProgram) -> None:
    """Take tokens out of the graph and the signature of `program`."""
    signature, graph = program.graph_signature, program.graph
    if not any(spec.kind is InputKind.TOKEN for spec in signature.input_specs):
        return
    output = graph.output_node()
    returned: Any = output.args[0]
    pairs = zip(signature.output_specs, returned, strict=True)
    kept = [(spec, node) for spec, node in pairs if spec.kind is not OutputKind.TOKEN]
    output.args = (tuple(node for _, node in kept),)
    signature.output_specs[:] = [spec for spec, _ in kept]
    for node in reversed(graph.find_nodes(op="call_function", target=WITH_EFFECTS)):
        _remove(node)
    placeholders = graph.find_nodes(op="placeholder")
    for spec, node in list(zip(signature.input_specs, placeholders, strict=True)):
        if spec.kind is InputKind.TOKEN:
            graph.erase_node(node)
            signature.input_specs.remove(spec)
    program.graph_module.recompile()


def _remove(node: Node) -> None:
    given: Any = node.args
    token, op, *args = given
    values: Any = node.meta["val"][1:] if isinstance(node.meta.get("val"), (list, tuple)) else ()
    call = None
    if op._schema.returns:
        with node.graph.inserting_before(node):
            call = node.graph.call_function(op, tuple(args), dict(node.kwargs))
        call.meta = {**node.meta, "val": values[0] if len(values) == 1 else values}
    for user in list(node.users):
        index: Any = user.args[1]
        if index == 0:
            user.replace_all_uses_with(token)
        elif call is not None and len(values) == 1:
            user.replace_all_uses_with(call)
        elif call is not None:
            user.args = (call, index - 1)
            continue
        node.graph.erase_node(user)
    node.graph.erase_node(node)
