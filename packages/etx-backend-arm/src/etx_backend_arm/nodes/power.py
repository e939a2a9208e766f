# SPDX-License-Identifier: BSD-3-Clause
"""Powers, quotients that are whole, and what they leave: of floats, of any sign."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.nodes.arithmetic import Pair
from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.table import arguments, floating, lowers, static_shape
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
HALF_OF_DIGITS = 2.0**12 + 1


class Choices(Floats):
    """Formulas of floats with choices in them; sizes of 1 are broadcast."""

    def _wider(self, given: tuple[str, ...]) -> list[int]:
        shapes = [self.call.graph.shape(each) for each in given]
        wide = [shape for shape in shapes if len(shape) == len(self.shape)]
        return [max(sizes) for sizes in zip(*wide, strict=True)]

    def _make(self, op: Op, attribute: Any, dtype: DType, *given: str) -> str:
        name, shape = self.call.fresh(self._name(op.name.lower())), self._wider(given)
        return self.call.graph.operator(op, attribute, given, name, shape, dtype)

    def one(self, op: Op, attribute: Any, *inputs: str) -> str:
        """Add an operator."""
        return self._make(op, attribute, self.call.graph.dtype(inputs[0]), *inputs)

    def mul(self, first: str, second: str | float) -> str:
        """Return the product."""
        other = self._held(second, first)
        name = self.call.fresh(self._name("mul"))
        return self.call.graph.multiply(first, other, name, self._wider((first, other)))

    def _held(self, value: str | float, of: str) -> str:
        return value if isinstance(value, str) else self.number(value, of)

    def sub(self, first: str, second: str) -> str:
        """Return the difference."""
        return self.one(Op.SUB, fbs.SubAttribute(), first, second)

    def size(self, value: str) -> str:
        """Return the value without its sign."""
        return self.one(Op.ABS, fbs.AbsAttribute(), value)

    def floor(self, value: str) -> str:
        """Return the largest whole number that is not greater."""
        return self.one(Op.FLOOR, fbs.FloorAttribute(), value)

    def equal(self, first: str, second: str | float) -> str:
        """Return where both are equal."""
        other = self._held(second, first)
        return self._make(Op.EQUAL, fbs.EqualAttribute(), DType.BOOL, first, other)

    def greater(self, first: str, second: str) -> str:
        """Return where the first is greater."""
        return self._make(Op.GREATER, fbs.GreaterAttribute(), DType.BOOL, first, second)

    def negative(self, value: str) -> str:
        """Return where a value is less than zero."""
        return self.greater(self.number(0.0, value), value)

    def where(self, condition: str, yes: str, no: str) -> str:
        """Return one of two where a condition holds, the other where it does not."""
        dtype = self.call.graph.dtype(no)
        return self._make(Op.SELECT, fbs.SelectAttribute(), dtype, condition, yes, no)


def _power(f: Choices, base: str, exponent: str) -> str:
    """POW is of positive bases: signs, powers of zero, and what has no power, are put in."""
    size = f.size(base)
    is_zero, one = f.equal(size, 0.0), f.number(1.0, size)
    infinite, none = f.number(math.inf, size), f.number(math.nan, size)
    made = f.one(Op.POW, fbs.PowAttribute(), f.where(is_zero, one, size), exponent)
    of_zero = f.where(f.negative(exponent), infinite, f.number(0.0, size))
    made = f.where(f.equal(exponent, 0.0), one, f.where(is_zero, of_zero, made))
    half = f.mul(exponent, 0.5)
    is_odd = f.equal(f.sub(half, f.floor(half)), 0.5)
    is_whole = f.equal(f.floor(exponent), exponent)
    below = f.where(is_whole, f.where(is_odd, f.neg(made), made), none)
    return f.where(f.negative(base), below, made)


def _power_of_number(f: Choices, x: str, exponent: float) -> str:
    if exponent == 0:
        one = f.number(1.0, x)
        return f.where(f.negative(x), one, one)
    if exponent in (1, 2):
        return x if exponent == 1 else f.mul(x, x)
    made = f.one(Op.POW, fbs.PowAttribute(), f.size(x), f.number(abs(exponent), x))
    if exponent < 0:
        made = f.reciprocal(made)
    if math.isinf(exponent) or exponent % 2 == 0:
        return made
    return f.where(f.negative(x), f.neg(made) if exponent % 1 == 0 else f.mul(made, math.nan), made)


def _nearest(f: Choices, x: str, y: str) -> str:
    return f.floor(f.add(f.mul(x, f.reciprocal(y)), 0.5))


def _quotient(f: Choices, x: str, y: str) -> tuple[str, str]:
    """Return how often a positive number is in another, and the rest.

    Of a quotient below 2**12 the rest is exact: it times each half of the divisor's digits is.
    """
    near = _nearest(f, x, y)
    spread = f.mul(y, HALF_OF_DIGITS)
    upper = f.sub(spread, f.sub(spread, y))
    rest = f.sub(f.sub(x, f.mul(near, upper)), f.mul(near, f.sub(y, upper)))
    is_less = f.negative(rest)
    return f.where(is_less, f.add(near, -1.0), near), f.where(is_less, f.add(rest, y), rest)


def _floored(f: Choices, x: str, y: str) -> tuple[str, str]:
    """Return the quotient that is rounded down, and the rest without the divisor's sign."""
    return _quotient(f, f.where(f.negative(y), f.neg(x), x), f.size(y))


def _whole_quotient(f: Choices, x: str, y: str) -> str:
    """Return the quotient without its fraction: of one that is rounded first, as PyTorch has it."""
    sizes = f.size(x), f.size(y)
    near = _nearest(f, *sizes)
    made = f.where(f.greater(f.mul(near, sizes[1]), sizes[0]), f.add(near, -1.0), near)
    below = f.where(f.negative(y), made, f.neg(made))
    above = f.where(f.negative(y), f.neg(made), made)
    return f.where(f.negative(x), below, above)


def rounded(node: Node, look: Look) -> str | None:
    """It is not divided by the number zero."""
    divisor = arguments(node)[1]
    return f"{node.name} divides by zero" if divisor == 0 else None


def of_number(node: Node, look: Look) -> str | None:
    """The exponent is a number."""
    exponent = arguments(node)[1]
    return None if isinstance(exponent, (int, float)) else f"{node.name} has no number"


def _operands(values: Values, node: Node) -> tuple[Choices, str, str]:
    """Return both operands as float32 of the result's rank."""
    if isinstance(node.args[1], Node):
        pair = Pair(values, node)
        first, second = (pair.call.as_float32(n, f"wider_{i}") for i, n in enumerate(pair.names))
        return Choices(pair.call), first, second
    call = Call(values, node)
    first = call.as_float32(call.get(call.activations[0]), "wider")
    f = Choices(call)
    return f, first, f.number(float(arguments(node)[1]), first)


@lowers(aten.pow.Tensor_Tensor, when=(floating, static_shape))
def raised(values: Values, node: Node) -> None:
    """Lower to POW of what has no sign, and a choice of the sign."""
    f, base, exponent = _operands(values, node)
    f.call.done(_power(f, base, exponent))


@lowers(aten.pow.Tensor_Scalar, when=(floating, static_shape, of_number))
def raised_by_number(values: Values, node: Node) -> None:
    """Lower to POW, to MUL where it is a square."""
    f, base, _ = _operands(values, node)
    f.call.done(_power_of_number(f, base, float(arguments(node)[1])))


def divided(values: Values, node: Node) -> None:
    """Lower to MUL by the RECIPROCAL, and FLOOR; what is a multiple is not one less."""
    f, x, y = _operands(values, node)
    mode = "floor" if node.target is aten.floor_divide.default else arguments(node)[2]
    if mode is None:
        f.call.done(f.mul(x, f.reciprocal(y)))
    else:
        f.call.done(_floored(f, x, y)[0] if mode == "floor" else _whole_quotient(f, x, y))


for target in (aten.div.Scalar_mode, aten.div.Tensor_mode, aten.floor_divide.default):
    lowers(target, when=(floating, static_shape, rounded))(divided)


@lowers(aten.remainder.Scalar, when=(floating, static_shape, rounded))
@lowers(aten.remainder.Tensor, when=(floating, static_shape))
def left_over(values: Values, node: Node) -> None:
    """Lower to what multiples of the divisor leave."""
    f, x, y = _operands(values, node)
    _, rest = _floored(f, x, y)
    f.call.done(f.where(f.negative(y), f.neg(rest), rest))
