# SPDX-License-Identifier: BSD-3-Clause
"""Arithmetic of int32 values inside of an operator, and tables of 16 bits."""

from __future__ import annotations

import torch

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs

__all__ = ["ENTRIES", "LARGEST", "STEP", "Integers", "table8", "table16"]

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


def table8(call: Call, value: str, results: torch.Tensor, bits: int, suffix: str) -> str:
    """Look int8 values up, of which each has a result from -1 to 1: int32 multiples of 2**-bits.

    ``bits`` are at most 29, as RESCALE has it.
    """
    name = call.fresh(suffix)
    least = float(results.min())
    scale, point = (2.0**-8, -128) if least >= 0 else (2.0**-7, 0)
    entries = (results / scale + point).round().clamp(-128, 127).to(torch.int8)
    data = call.values.constant(f"{name}_entries", entries)
    shape, graph = call.graph.shape(value), call.graph
    attribute, operands = fbs.TableAttribute(), [value, data]
    looked = graph.operator(Op.TABLE, attribute, operands, f"{name}_byte", shape, DType.INT8)
    return graph.rescale(looked, [scale * 2.0**bits], (point, 0), name, DType.INT32)


class Integers:
    """Operators of int32 values that have one shape each."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def binary(self, op: Op, attribute: object, first: str, second: str, suffix: str) -> str:
        """Add an operator whose result has the shape of its first operand, or the second's."""
        shapes = [self.call.graph.shape(name) for name in (first, second)]
        shape = [max(sizes) for sizes in zip(*shapes, strict=True)]
        return self.call.emit(op, attribute, [first, second], suffix, shape)

    def least(self, first: str, second: str, suffix: str) -> str:
        """Return the smaller one."""
        attribute = fbs.MinimumAttribute(nan_mode=NanPropagationMode.PROPAGATE)
        return self.binary(Op.MINIMUM, attribute, first, second, suffix)

    def most(self, first: str, second: str, suffix: str) -> str:
        """Return the greater one."""
        attribute = fbs.MaximumAttribute(nan_mode=NanPropagationMode.PROPAGATE)
        return self.binary(Op.MAXIMUM, attribute, first, second, suffix)

    def sub(self, first: str, second: str, suffix: str) -> str:
        """Return the difference."""
        return self.binary(Op.SUB, fbs.SubAttribute(), first, second, suffix)

    def number(self, value: int, like: str) -> str:
        """Return a constant of the rank of another value."""
        rank = len(self.call.graph.shape(like))
        return self.call.values.number(value, rank, DType.INT32)

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

    def add(self, first: str, second: str, suffix: str) -> str:
        """Return the sum."""
        return self.binary(Op.ADD, fbs.AddAttribute(), first, second, suffix)

    def row(self, numbers: torch.Tensor, like: str, suffix: str) -> str:
        """Return constants along the last dimension of another value."""
        rank = len(self.call.graph.shape(like))
        shaped = numbers.round().to(torch.int32).reshape([1] * (rank - 1) + [-1])
        return self.call.values.constant(self.call.fresh(suffix), shaped)
