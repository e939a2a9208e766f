# SPDX-License-Identifier: BSD-3-Clause
"""State: placeholders whose memory is overwritten when the method ends."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

aten = torch.ops.aten

VIEWS = (aten.view_copy.default, aten.expand_copy.default)


def is_state(node: Node, program: ExportedProgram) -> bool:
    """Whether `node` is state or a view of it: what returns it in place of a copy returns what
    is written later."""
    while node.op == "call_function" and node.target in VIEWS:
        node = node.all_input_nodes[0]
    if node.op != "placeholder":
        return False
    signature = program.graph_signature
    written = {*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()}
    written |= set(getattr(signature, "parameters_to_mutate", {}).values())
    names = {
        spec.arg.name
        for spec in signature.input_specs
        if spec.target in written or spec.arg.name in written
    }
    return node.name in names
