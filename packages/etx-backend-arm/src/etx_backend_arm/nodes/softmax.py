# SPDX-License-Identifier: BSD-3-Clause
"""Softmax: tables of 16 bits with interpolation between their entries, sums in int32."""

from __future__ import annotations

from math import ceil, log2

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.reduce import reduce
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    lowers,
    quantized,
    static_shape,
)
from etx_backend_arm.nodes.wide import ENTRIES, LARGEST, STEP, Integers, table8, table16
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
TARGETS = (aten.softmax.int, aten._softmax.default)


def _of_one(call: Call) -> None:
    """Whatever the number is, it is looked up that its share is 1."""
    assert call.step is not None
    share = torch.full((256,), call.step.form.integer(1.0), dtype=torch.int8)
    operands = [call.get(call.activations[0]), call.values.constant(call.fresh("share"), share)]
    call.same(call.emit(Op.TABLE, fbs.TableAttribute(), operands, "shared", call.shape))


@lowers(TARGETS[0], when=(quantized, static_shape), profile=Profile.INT)
@lowers(TARGETS[1], when=(quantized, static_shape), profile=Profile.INT)
def softmax_int8(values: Values, node: Node) -> None:
    """exp(x - max) of a table, over their sum by a table of 1/s of the sum's leading 15 bits.

    With e = exp(x - max) * 2**22 and s their sum, z the zeros above s and r = 2**52 / (s << z - 1):
    e / s = e * r * 2**(z - 1) / 2**52, where e * r / 2**14 and what follows stay in int32. Of more
    than 512 exponents, each is less by the factor that keeps their sum in int32.
    """
    call = Call(values, node, "nchw")
    if call.shape[arguments(node)[1]] == 1:
        _of_one(call)
        return
    if values.narrow_tables:
        _of_narrow_tables(call)
        return
    math, graph = Integers(call), call.graph
    (source,) = call.activations
    form, value = call.form(source), call.get(source)
    dim = arguments(node)[1] % len(call.shape)
    wide = call.wide(value, 1.0, form.zero_point, "wide")
    most = reduce(call, Op.REDUCE_MAX, wide, [dim], "most")
    below = math.sub(wide, most, "below")
    index = graph.rescale(below, [float(STEP)], (0, 0), call.fresh("index"), DType.INT16)
    steps = torch.arange(ENTRIES, dtype=torch.float64) - 256
    exponents = torch.exp((steps * form.scale).clamp(max=0.0)) * LARGEST
    raised = table16(call, index, exponents, "raised")
    spare = max(ceil(log2(call.shape[dim])) - 9, 0)
    if spare:
        raised = graph.rescale(raised, [2.0**-spare], (0, 0), call.fresh("less"), DType.INT32)
    total = reduce(call, Op.REDUCE_SUM, raised, [dim], "total")
    zeros = math.leading_zeros(total, "zeros")
    up = math.sub(zeros, math.number(1, zeros), "up")
    leading = math.left(total, up, "leading")
    index = graph.rescale(leading, [2.0**-16], (0, 0), call.fresh("leading_bits"), DType.INT16)
    at = (steps * STEP).clamp(min=2**14 - STEP)
    inverses = table16(call, index, (2.0**29 / at).clamp(max=LARGEST), "inverse")
    scaled = math.mul(raised, inverses, 14, "scaled")
    down = math.sub(math.number(10 + spare, zeros), zeros, "down")
    call.done(math.right(scaled, down, "ratio"), 2.0 ** (spare - 29))


def _of_narrow_tables(call: Call) -> None:
    """exp(x - max) as two bytes of tables, over their sum by a table and a step of Newton's.

    With e = exp(x - max) * 2**15, s their sum, L = s << a with 31 bits, and R = 2**60 / L, made of
    a first R by R * (2 - L * R / 2**60): e / s = e * R * 2**a / 2**60.
    """
    math, graph = Integers(call), call.graph
    (source,) = call.activations
    form, value = call.form(source), call.get(source)
    dim = call.arguments[1] % len(call.shape)
    most = reduce(call, Op.REDUCE_MAX, value, [dim], "most")
    wide = call.wide(value, 1.0, form.zero_point, "wide")
    below = math.sub(wide, call.wide(most, 1.0, form.zero_point, "most_wide"), "below")
    index = graph.rescale(below, [1.0], (0, 127), call.fresh("index"))
    steps = torch.arange(-255, 1, dtype=torch.float64)
    exponents = (torch.exp(steps * form.scale) * 2**15).round().clamp(max=LARGEST)
    upper, lower = (exponents / 256).floor(), exponents % 256
    raised = math.add(
        table8(call, index, upper / 128, 15, "upper"),
        table8(call, index, lower / 256, 8, "lower"),
        "raised",
    )
    total = reduce(call, Op.REDUCE_SUM, raised, [dim], "total")
    up = math.sub(math.leading_zeros(total, "zeros"), math.number(1, total), "up")
    leading = math.left(total, up, "leading")
    above = math.sub(leading, math.number(3 * 2**29, leading), "above")
    index = graph.rescale(above, [2.0**-22], (0, 0), call.fresh("leading_bits"))
    at = 3 * 2**29 + torch.arange(-128, 128, dtype=torch.float64) * 2**22
    first = table8(call, index, 2**30 / at, 29, "inverse")
    near = math.mul(leading, first, 31, "half_of_one")
    rest = math.sub(math.number(2**29, near), near, "other_half")
    inverse = math.mul(first, rest, 27, "inverse_better")
    scaled = math.mul(raised, inverse, 14, "scaled")
    down = math.sub(math.number(16, up), up, "down")
    call.done(math.right(scaled, down, "ratio"), 2.0**-30)


@lowers(TARGETS[0], when=(floating, static_shape))
@lowers(TARGETS[1], when=(floating, static_shape))
def softmax(values: Values, node: Node) -> None:
    """Lower to exp(x - max) times the RECIPROCAL of its sum."""
    call = Call(values, node, "nchw")
    floats, value = Floats(call), call.as_float32(call.get(call.activations[0]), "wider")
    dim = arguments(node)[1] % len(call.shape)
    most = reduce(call, Op.REDUCE_MAX, value, [dim], "most")
    below = floats.one(Op.SUB, fbs.SubAttribute(), value, most)
    raised = floats.one(Op.EXP, fbs.ExpAttribute(), below)
    total = reduce(call, Op.REDUCE_SUM, raised, [dim], "total")
    shape = call.graph.shape(total)
    inverse = call.emit(Op.RECIPROCAL, fbs.ReciprocalAttribute(), [total], "inverse", shape)
    call.done(floats.mul(raised, inverse))
