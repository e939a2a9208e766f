# SPDX-License-Identifier: BSD-3-Clause
"""Tensors made of nothing but numbers: constants, and TILE where one number is all of it."""

from __future__ import annotations

from math import prod

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import FLOATS, Profile, integers, lowers, static_shape
from etx_backend_arm.quantized import FILLED, Look
from etx_backend_arm.tosa import Op, fbs
from etx_backend_arm.values import Values

MOST_ELEMENTS = 2**20
"""Larger constants are made where they are needed."""


def of_numbers(node: Node, look: Look) -> str | None:
    """Its arguments are numbers, it is of a size that a program can hold."""
    if any(not isinstance(each, torch.SymInt) for each in node.meta["val"].shape):
        count = node.meta["val"].numel()
        if isinstance(count, int) and count > MOST_ELEMENTS:
            return f"{node.name} has {count} elements, constants have at most {MOST_ELEMENTS}"
    if node.all_input_nodes:
        return f"{node.name} is made of what {node.all_input_nodes[0].name} says"
    return None


def of_floats(node: Node, look: Look) -> str | None:
    """It is of floats."""
    dtype = node.meta["val"].dtype
    return None if dtype in FLOATS else f"{node.name} is {dtype}, TOSA FP has floats"


def of_integers(node: Node, look: Look) -> str | None:
    """It is of plain integers, or truths."""
    dtype = node.meta["val"].dtype
    known = (torch.bool, torch.int8, torch.int16, torch.int32)
    return None if dtype in known else f"{node.name} is {dtype}, not int8, int16 or int32"


def made(values: Values, node: Node) -> None:
    """Lower to CONST, of one element behind a TILE where all are alike."""
    call = Call(values, node, "nchw")
    held = node.target(*node.args, **node.kwargs)  # type: ignore[operator]
    if call.step is not None:
        form = call.step.form
        held = (held.double() / form.scale).round() + form.zero_point
        held = held.clamp(form.low, form.high).to(form.dtype)
    first = held.flatten()[:1]
    if held.dim() == 0 or prod(held.shape) == 1 or not bool((held == first).all()):
        call.same(values.constant(call.fresh("held"), held))
        return
    one = values.constant(call.fresh("held"), first.reshape([1] * held.dim()))
    operands = [one, call.graph.shape_constant(call.shape)]
    call.same(call.emit(Op.TILE, fbs.TileAttribute(), operands, "of_all", call.shape))


for target in FILLED:
    lowers(target, when=(integers, static_shape, of_numbers), profile=Profile.INT)(made)
    lowers(target, when=(of_integers, static_shape, of_numbers), profile=Profile.INT)(made)
    lowers(target, when=(of_floats, static_shape, of_numbers))(made)
