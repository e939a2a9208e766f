# SPDX-License-Identifier: BSD-3-Clause
"""Other types for the same numbers: CAST, and what makes PyTorch's rounding of TOSA's."""

from __future__ import annotations

from typing import Any

import torch
from etx_exir.ir.dim_order import TO_COPY
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.moves import in_order
from etx_backend_arm.nodes.table import FLOATS, Profile, lowers, static_shape
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, Values

COPIES = (TO_COPY, torch.ops.aten._to_copy.default)
INTEGERS = (torch.bool, torch.int8, torch.int16, torch.int32)


def _types(node: Node) -> tuple[torch.dtype, torch.dtype]:
    source: Any = node.args[0]
    return source.meta["val"].dtype, node.meta["val"].dtype


def between_integers(node: Node, look: Look) -> str | None:
    """Both types are integers, or truths."""
    given, made = _types(node)
    if given in INTEGERS and made in INTEGERS:
        return None
    return f"{node.name} makes {made} of {given}, TOSA INT has integers of up to 32 bits"


def from_or_to_floats(node: Node, look: Look) -> str | None:
    """One of the types is of floats."""
    types = set(_types(node))
    if types & set(FLOATS) and types <= {*FLOATS, *INTEGERS}:
        return None
    given, made = _types(node)
    known = ", ".join(map(str, FLOATS))
    return f"{node.name} makes {made} of {given}, TOSA FP has {known} and integers of up to 32 bits"


def integers(values: Values, node: Node) -> None:
    """Lower to CAST, which drops upper bits; truth is what is not zero."""
    call = Call(values, node)
    value, dtype = call.get(call.operands[0]), DTYPES[node.meta["val"].dtype]
    values.define(node, call.cast(value, dtype, "cast"), call.layout)


def floats(values: Values, node: Node) -> None:
    """Lower to CAST of floats that are cut off, for CAST rounds; truth is what is not zero."""
    call = Call(values, node)
    value, (given, made) = call.get(call.operands[0]), _types(node)
    if made == torch.bool:
        value = _is_not_zero(call, value)
    elif given == torch.bool:
        value = call.cast(call.cast(value, DType.INT8, "byte"), DTYPES[made], "cast")
    elif given in FLOATS and made not in FLOATS:
        value = call.cast(_cut_off(call, value), DTYPES[made], "cast")
    else:
        value = call.cast(value, DTYPES[made], "cast")
    values.define(node, value, call.layout)


def _is_not_zero(call: Call, value: str) -> str:
    graph, shape = call.graph, call.graph.shape(value)
    operands = [value, Floats(call, shape).number(0.0, value)]
    same = graph.operator(
        Op.EQUAL, fbs.EqualAttribute(), operands, call.fresh("is_zero"), shape, DType.BOOL
    )
    attribute = fbs.LogicalNotAttribute()
    return graph.operator(
        Op.LOGICAL_NOT, attribute, [same], call.fresh("is_not"), shape, DType.BOOL
    )


def _cut_off(call: Call, value: str) -> str:
    shape = call.graph.shape(value)
    few = Floats(call, shape)
    below = few.one(Op.CEIL, fbs.CeilAttribute(), value)
    return few.where_positive(value, below, few.one(Op.FLOOR, fbs.FloorAttribute(), value))


for target in COPIES:
    lowers(target, when=(static_shape, in_order, between_integers), profile=Profile.INT)(integers)
    lowers(target, when=(static_shape, in_order, from_or_to_floats))(floats)
