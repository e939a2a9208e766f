# SPDX-License-Identifier: BSD-3-Clause
"""``stride(f(x))`` as the operator that runs gives it, where a view has become a copy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._prims_common import is_contiguous_or_false
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from etx_exir.ir.constants import Constants, fake_mode_of
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.dim_order import dim_order_of
from etx_exir.passes.base import Pass, contiguous, propagate

CHANNELS_LAST = (torch.channels_last, torch.channels_last_3d)


class NormalizeStrides(Pass):
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
    if node.op == "placeholder":
        return not _contiguous(node.meta.get("val"))
    order: Any = node.kwargs.get("dim_order")
    if order is not None and list(order) != sorted(order):
        return True
    return node.kwargs.get("memory_format") in CHANNELS_LAST


def _propagate_all(module: GraphModule, mode: FakeTensorMode) -> bool:
    changed = False
    for node in module.graph.nodes:
        if node.op == "call_function" and not any(a.op == "get_attr" for a in node.all_input_nodes):
            before = _orders(node)
            propagate(node, mode)
            changed |= before != _orders(node)
    return changed


def _orders(node: Node) -> list[tuple[int, ...]]:
    leaves = pytree.tree_leaves(node.meta["val"])
    return [dim_order_of(leaf) for leaf in leaves if isinstance(leaf, Tensor)]
