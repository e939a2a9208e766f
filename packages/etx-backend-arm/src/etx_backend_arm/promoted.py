# SPDX-License-Identifier: BSD-3-Clause
"""Constants of integers beside floats, ``arange(4) + x``, as the floats they are promoted to."""

from __future__ import annotations

import torch
from etx_exir.ir.constants import Constants, fake_mode_of
from etx_exir.passes.base import name_outputs
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_backend_arm.quantized import FILLED

__all__ = ["promote_constants", "promote_filled"]

aten = torch.ops.aten
PROMOTING = (
    aten.add.Tensor,
    aten.div.Tensor,
    aten.maximum.default,
    aten.minimum.default,
    aten.mul.Tensor,
    aten.sub.Tensor,
)


def promote_filled(model: GraphModule) -> None:
    """Let what is filled with integers be floats where nothing else is made of it."""
    for target in (*FILLED, aten.arange.default, aten.arange.start):
        for node in model.graph.find_nodes(op="call_function", target=target):
            types = {_float_of(user) for user in node.users}
            if len(types) == 1 and None not in types and _is_integer(node):
                node.kwargs = {**node.kwargs, "dtype": types.pop()}
                node.meta["val"] = node.meta["val"].to(node.kwargs["dtype"])


def promote_constants(program: ExportedProgram) -> None:
    """Do so in a lowered program, where constants of integers become others of floats, too."""
    promote_filled(program.graph_module)
    constants, mode = Constants(program), fake_mode_of(program)
    count = len(program.graph.nodes)
    for node in list(program.graph.nodes):
        dtype = _float_of(node)
        for each in node.all_input_nodes if dtype else ():
            held = constants.get(each) if _is_integer(each) else None
            if held is not None:
                made = constants.add(held.to(dtype), f"{each.name}_{node.name}", mode)
                node.replace_input_with(each, made)
    if len(program.graph.nodes) != count:
        name_outputs(program)


def _float_of(node: Node) -> torch.dtype | None:
    """Return the type of what an operator makes that promotes its operands to floats."""
    if node.op != "call_function" or node.target not in PROMOTING:
        return None
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype if dtype.is_floating_point else None


def _is_integer(node: Node) -> bool:
    held = node.meta.get("val")
    return isinstance(held, torch.Tensor) and not held.is_floating_point()
