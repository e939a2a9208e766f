# SPDX-License-Identifier: BSD-3-Clause
"""Softmax: tables of 16 bits with interpolation between their entries, sums in int32."""

from __future__ import annotations

from math import ceil, log2

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.reduce import reduce
from etx_backend_arm.nodes.table import Profile, arguments, float32, lowers, quantized, static_shape
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
TARGETS = (aten.softmax.int, aten._softmax.default)
ENTRIES = 513
STEP = 128
"""TABLE of int16 interpolates between entries so far apart, and returns 128 times the value."""
LARGEST = 2**15 - 1


def table16(call: Call, value: str, entries: torch.Tensor, suffix: str) -> str:
    """Look int16 values up: ``entries[i]`` belongs to (i - 256) * 128."""
    name = call.fresh(suffix)
    data = call.values.constant(f"{name}_entries", entries.round().to(torch.int16))
    shape = call.graph.shape(value)
    operands = [value, data]
    return call.graph.operator(Op.TABLE, fbs.TableAttribute(), operands, name, shape, DType.INT32)


class Integers:
    """Operators of int32 values that have one shape each."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def binary(self, op: Op, attribute: object, first: str, second: str, suffix: str) -> str:
        """Add an operator whose result has the shape of its first operand, or the second's."""
        shapes = [self.call.graph.shape(name) for name in (first, second)]
        shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
        return self.call.emit(op, attribute, [first, second], suffix, shape)

    def sub(self, first: str, second: str, suffix: str) -> str:
        """Return the difference."""
        return self.binary(Op.SUB, fbs.SubAttribute(), first, second, suffix)

    def number(self, value: int, like: str) -> str:
        """Return a constant of the rank of another value."""
        rank = len(self.call.graph.shape(like))
        tensor = torch.full([1] * rank, value, dtype=torch.int32)
        return self.call.values.constant(f"i_{value}_{rank}", tensor)

    def mul(self, first: str, second: str, shift: int, suffix: str) -> str:
        """Return the rounded product over 2**shift."""
        graph = self.call.graph
        shifts = graph.constant(f"shift_{shift}", [1], DType.INT8, bytes([shift]))
        shapes = [graph.shape(name) for name in (first, second)]
        shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
        operands = [first, second, shifts]
        return self.call.emit(Op.MUL, fbs.MulAttribute(), operands, suffix, shape)

    def leading_zeros(self, value: str, suffix: str) -> str:
        """Return how many bits above the first one are zero."""
        shape = self.call.graph.shape(value)
        return self.call.emit(Op.CLZ, fbs.ClzAttribute(), [value], suffix, shape)

    def left(self, value: str, by: str, suffix: str) -> str:
        """Shift to the left."""
        attribute = fbs.LogicalLeftShiftAttribute()
        return self.binary(Op.LOGICAL_LEFT_SHIFT, attribute, value, by, suffix)

    def right(self, value: str, by: str, suffix: str) -> str:
        """Shift to the right with rounding."""
        attribute = fbs.ArithmeticRightShiftAttribute(round=True)
        return self.binary(Op.ARITHMETIC_RIGHT_SHIFT, attribute, value, by, suffix)


@lowers(TARGETS[0], when=(quantized, static_shape), profile=Profile.INT)
@lowers(TARGETS[1], when=(quantized, static_shape), profile=Profile.INT)
def softmax_int8(values: Values, node: Node) -> None:
    """exp(x - max) of a table, over their sum by a table of 1/s of the sum's leading 15 bits.

    With e = exp(x - max) * 2**22 and s their sum, z the zeros above s and r = 2**52 / (s << z - 1):
    e / s = e * r * 2**(z - 1) / 2**52, where e * r / 2**14 and what follows stay in int32. Of more
    than 512 exponents, each is less by the factor that keeps their sum in int32.
    """
    call = Call(values, node, "nchw")
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


@lowers(TARGETS[0], when=(float32, static_shape))
@lowers(TARGETS[1], when=(float32, static_shape))
def softmax(values: Values, node: Node) -> None:
    """Lower to exp(x - max) times the RECIPROCAL of its sum."""
    call = Call(values, node, "nchw")
    floats, value = Floats(call), call.get(call.activations[0])
    dim = arguments(node)[1] % len(call.shape)
    most = reduce(call, Op.REDUCE_MAX, value, [dim], "most")
    below = floats.one(Op.SUB, fbs.SubAttribute(), value, most)
    raised = floats.one(Op.EXP, fbs.ExpAttribute(), below)
    total = reduce(call, Op.REDUCE_SUM, raised, [dim], "total")
    shape = call.graph.shape(total)
    inverse = call.emit(Op.RECIPROCAL, fbs.ReciprocalAttribute(), [total], "inverse", shape)
    call.done(floats.mul(raised, inverse))
