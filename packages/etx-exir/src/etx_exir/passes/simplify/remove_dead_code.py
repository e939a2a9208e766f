# SPDX-License-Identifier: BSD-3-Clause
"""``f(x)`` that no output needs -> nothing (DCE), and so the constants that nothing else reads."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Node

from etx_exir.ir.constants import Constants
from etx_exir.ir.control_flow_graphs import captures, graph_modules
from etx_exir.ir.delegate_call import CALL_DELEGATE, LoweredBackendModule
from etx_exir.passes.base import Pass


class RemoveDeadCode(Pass):
    """Remove unused nodes and captures from every graph and unused constants from the program."""

    def apply(self, program: ExportedProgram) -> bool:
        changed = False
        for item in reversed(captures(program.graph_module)):
            for module in item.modules:
                changed |= module.graph.eliminate_dead_code(_is_impure)
            changed |= item.drop_unused()
        for module in graph_modules(program.graph_module):
            if module.graph.eliminate_dead_code(_is_impure):
                changed = True
        constants = Constants(program)
        for node, _ in list(constants.items()):
            if not node.users:
                constants.remove(node)
                changed = True
        return changed


def _is_impure(node: Node) -> bool:
    if node.op in ("placeholder", "output"):
        return True
    if node.target is CALL_DELEGATE:
        return _owns_state(node)
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def _owns_state(node: Node) -> bool:
    """Tell whether the delegate that `node` calls changes buffers of its own."""
    lowered = getattr(node.graph.owning_module, str(getattr(node.args[0], "target", "")), None)
    if not isinstance(lowered, LoweredBackendModule):
        return False
    return bool(lowered.original_module.graph_signature.buffers_to_mutate)
