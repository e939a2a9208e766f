# SPDX-License-Identifier: BSD-3-Clause
"""``stride(f(x))`` as the operator that runs gives it, where a view has become a copy."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch._prims_common import is_contiguous_or_false
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from etx_exir.constants import Constants, fake_mode_of
from etx_exir.dim_order import CLONE, EMPTY, TO_COPY
from etx_exir.passes.base import Pass, contiguous, graph_modules, propagate

SETTERS = (CLONE, EMPTY, TO_COPY)


class SettleStrides(Pass):
    """Make every value contiguous, unless an input or a copy asks for another layout."""

    def apply(self, program: ExportedProgram) -> bool:
        mode = fake_mode_of(program)
        changed = self._constants(program, mode)
        for module in graph_modules(program.graph_module):
            if any(_asks(node) for node in module.graph.nodes):
                changed |= _propagate_all(module, mode)
                continue
            for node in module.graph.nodes:
                value = node.meta.get("val")
                if any(not _contiguous(leaf) for leaf in pytree.tree_leaves(value)):
                    with mode:
                        node.meta["val"] = pytree.tree_map_only(Tensor, contiguous, value)
                    changed = True
        return changed

    def _constants(self, program: ExportedProgram, mode: FakeTensorMode) -> bool:
        """Store constants contiguously: their bytes are written as they lie in memory."""
        changed = False
        constants = Constants(program)
        for node, tensor in constants.items():
            if not tensor.is_contiguous():
                constants.replace(node, tensor.detach().contiguous(), mode)
                changed = True
        return changed


def _contiguous(leaf: Any) -> bool:
    return not isinstance(leaf, Tensor) or is_contiguous_or_false(leaf)


def _asks(node: Node) -> bool:
    if node.op != "placeholder" and node.target not in SETTERS:
        return False
    return not _contiguous(node.meta.get("val"))


def _propagate_all(module: GraphModule, mode: FakeTensorMode) -> bool:
    for node in module.graph.nodes:
        if node.op == "call_function" and not any(a.op == "get_attr" for a in node.all_input_nodes):
            propagate(node, mode)
    return True
