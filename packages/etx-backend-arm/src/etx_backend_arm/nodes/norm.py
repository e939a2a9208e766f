# SPDX-License-Identifier: BSD-3-Clause
"""Layer normalization of floats."""

from __future__ import annotations

import operator
from math import prod

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.reduce import reduce
from etx_backend_arm.nodes.table import arguments, float32, lowers, picked_only, static_shape
from etx_backend_arm.quantized import Look, split_of
from etx_backend_arm.tosa import Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
LAYER_NORM = aten.native_layer_norm.default


def first_of_layer_norm(node: Node, look: Look) -> str | None:
    """It picks what is normalized."""
    source = split_of(node)
    if source is None or source.target is not LAYER_NORM or node.args[1] != 0:
        return f"{node.name} picks a result of {node.args[0]}, which has no lowering"
    return None


def only_normalized(node: Node, look: Look) -> str | None:
    """Mean and deviation are not read."""
    if all(each.args[1] == 0 for each in node.users):
        return None
    return f"the mean or deviation of {node.name} is read"


@lowers(LAYER_NORM, when=(float32, static_shape, picked_only, only_normalized))
def whole(values: Values, node: Node) -> None:
    """Lower to nothing: what picks its result is lowered."""


@lowers(operator.getitem, when=(float32, static_shape, first_of_layer_norm))
def layer_norm(values: Values, node: Node) -> None:
    """(x - mean) * rsqrt(variance + eps), in REDUCE_SUM, MUL, SUB and ADD."""
    norm = split_of(node)
    assert norm is not None
    call = Call(values, node, "nchw")
    floats = Floats(call)
    source, normal, weight, bias, eps = arguments(norm)
    value, rank = call.get(source), len(call.shape)
    dims = list(range(rank - len(normal), rank))
    part = 1 / prod(call.shape[dim] for dim in dims)
    few = Floats(call, [*call.shape[: dims[0]], *[1] * len(dims)], "of_row")
    mean = few.mul(reduce(call, Op.REDUCE_SUM, value, dims, "sum"), part)
    centred = floats.one(Op.SUB, fbs.SubAttribute(), value, mean)
    squares = reduce(call, Op.REDUCE_SUM, floats.mul(centred, centred), dims, "squares")
    spread = few.add(few.mul(squares, part), float(eps))
    made = floats.mul(centred, few.one(Op.RSQRT, fbs.RsqrtAttribute(), spread))
    for kind, each in (("weight", weight), ("bias", bias)):
        if each is None:
            continue
        name = call.get(each)
        sizes = call.graph.shape(name)
        operand = call.reshape(name, [1] * (rank - len(sizes)) + sizes, kind)
        made = floats.mul(made, operand) if kind == "weight" else floats.add(made, operand)
    call.done(made)
