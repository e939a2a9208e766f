# SPDX-License-Identifier: BSD-3-Clause
"""Constants of integers as what they are promoted to: beside floats, ``arange(4) + x``, floats;
beside smaller integers, ``clamp(x, tensor(-10), tensor(10))``, those."""

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
    aten.clamp.Tensor,
    aten.div.Tensor,
    aten.maximum.default,
    aten.minimum.default,
    aten.mul.Tensor,
    aten.sub.Tensor,
)
INTEGERS = (torch.int8, torch.int16, torch.int32)
"""Those that TOSA computes in, and a constant of a wider type without a dimension changes to."""


def promote_filled(model: GraphModule) -> None:
    """Let what is filled with integers be what all its readers promote it to."""
    for target in (*FILLED, aten.arange.default, aten.arange.start):
        for node in model.graph.find_nodes(op="call_function", target=target):
            types = {_promoted(user) for user in node.users}
            if len(types) == 1 and None not in types and _is_integer(node):
                node.kwargs = {**node.kwargs, "dtype": types.pop()}
                node.meta["val"] = node.meta["val"].to(node.kwargs["dtype"])


def promote_constants(program: ExportedProgram) -> None:
    """Do so in a lowered program, where constants of integers become others, too."""
    promote_filled(program.graph_module)
    constants, mode = Constants(program), fake_mode_of(program)
    count = len(program.graph.nodes)
    for node in list(program.graph.nodes):
        dtype = _promoted(node)
        for each in node.all_input_nodes if dtype else ():
            held = constants.get(each) if _is_integer(each) else None
            if held is not None and held.dtype != dtype:
                made = constants.add(held.to(dtype), f"{each.name}_{node.name}", mode)
                node.replace_input_with(each, made)
    if len(program.graph.nodes) != count:
        name_outputs(program)


def _promoted(node: Node) -> torch.dtype | None:
    """Return the type that an operator promotes its operands to, floats or integers of TOSA."""
    if node.op != "call_function" or node.target not in PROMOTING:
        return None
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype if dtype.is_floating_point or dtype in INTEGERS else None


def _is_integer(node: Node) -> bool:
    held = node.meta.get("val")
    return isinstance(held, torch.Tensor) and not held.is_floating_point()
