# SPDX-License-Identifier: BSD-3-Clause
"""``assert(condition)`` -> nothing: the constraints of sizes are recorded with the program."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram

from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.passes.base import Pass

aten = torch.ops.aten

ASSERTS = (
    aten._assert_async.default,
    aten._assert_async.msg,
    aten._assert_scalar.default,
    aten._assert_tensor_metadata.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    aten._functional_assert_async.msg,
)


class RemoveAsserts(Pass):
    """Drop assertions; `range_constraints` keeps what they say of sizes."""

    def apply(self, program: ExportedProgram) -> bool:
        changed = False
        for module in graph_modules(program.graph_module):
            found = [
                node
                for target in ASSERTS
                for node in module.graph.find_nodes(op="call_function", target=target)
                if not node.users
            ]
            for node in found:
                module.graph.erase_node(node)
            changed |= bool(found)
        return changed
