# SPDX-License-Identifier: BSD-3-Clause
"""Products of two activations that are matrices."""

from __future__ import annotations

from math import prod

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.conv import accumulator
from etx_backend_arm.nodes.table import Profile, floating, integers, lowers, static_shape
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, Values

aten = torch.ops.aten


def matrices(node: Node, look: Look) -> str | None:
    """Both operands have the same batch dimensions."""
    first, second = (each.meta["val"].shape for each in node.args[:2])  # type: ignore[union-attr]
    if len(first) < 2 or len(second) < 2 or first[:-2] != second[:-2]:
        return f"{node.name} multiplies {tuple(first)} and {tuple(second)}, not batches of matrices"
    return None


CHECKS = (static_shape, matrices)


@lowers(aten.bmm.default, when=(integers, *CHECKS), profile=Profile.INT)
@lowers(aten.mm.default, when=(integers, *CHECKS), profile=Profile.INT)
@lowers(aten.matmul.default, when=(integers, *CHECKS), profile=Profile.INT)
@lowers(aten.bmm.default, when=(floating, *CHECKS))
@lowers(aten.mm.default, when=(floating, *CHECKS))
@lowers(aten.matmul.default, when=(floating, *CHECKS))
def product(values: Values, node: Node) -> None:
    """Lower to MATMUL of batches in one dimension."""
    call = Call(values, node, "nchw")
    batches, operands = prod(call.shape[:-2]), []
    for i, each in enumerate(call.operands):
        value = call.get(each)
        shape = [batches, *call.graph.shape(value)[-2:]]
        operands.append(call.reshape(value, shape, f"batches_{i}"))
    shape = [batches, *call.shape[-2:]]
    if call.step is None:
        zero = call.graph.zero_point(0, call.graph.dtype(operands[0]))
        operands += [zero, zero]
        made, dtype, scale = "product", DType.FP32, None
    else:
        forms = [call.form(each) for each in call.operands]
        kind = DTYPES[forms[0].dtype]
        operands += [call.graph.zero_point(form.zero_point, kind) for form in forms]
        made, dtype, scale = "total", accumulator(forms[0]), forms[0].scale * forms[1].scale
    name = call.fresh(made)
    total = call.graph.operator(Op.MATMUL, fbs.MatMulAttribute(), operands, name, shape, dtype)
    if dtype == DType.INT48 and call.step is not None and scale is not None:
        ratios, points = [scale / call.step.form.scale], (0, 0)
        total = call.graph.rescale(total, ratios, points, call.fresh("rescaled"), DType.INT16)
        scale = call.step.form.scale
    call.done(call.reshape(total, call.shape, "as"), scale)
