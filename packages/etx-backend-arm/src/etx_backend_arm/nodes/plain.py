# SPDX-License-Identifier: BSD-3-Clause
"""Arithmetic of integers that are numbers, not steps of a scale: in int32, without rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.logic import GREATER, GREATER_EQUAL, INTEGERS, Operands
from etx_backend_arm.nodes.reduce import dims_of, reduce
from etx_backend_arm.nodes.table import Profile, arguments, lowers, static_shape
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs
from etx_backend_arm.values import DTYPES, Values

__all__ = ["PLAIN"]

aten = torch.ops.aten
BOUNDS = torch.iinfo(torch.int32)
MOST_SHIFTED = 31
PROPAGATE = NanPropagationMode.PROPAGATE
Formula = Callable[["Numbers"], str]


def whole_numbers(node: Node, look: Look) -> str | None:
    """All tensors are of integers of up to 32 bits, and all numbers are whole."""
    for each in (node, *node.all_input_nodes):
        held = each.meta["val"]
        if not isinstance(held, torch.Tensor) or held.dtype not in INTEGERS:
            said = getattr(held, "dtype", "several results")
            return f"{each.name} is {said}, the lowering takes int8, int16, int32"
    for number in node.args[1:]:
        if isinstance(number, float):
            return f"{number}, an operand of {node.name}, is not a whole number"
        if isinstance(number, int) and not BOUNDS.min <= number <= BOUNDS.max:
            return f"{number}, an operand of {node.name}, is beyond int32"
    return None


def alike(node: Node, look: Look) -> str | None:
    """All tensors are int32 and of one rank: the profile FP has no other integers."""
    held = [each.meta["val"] for each in (node, *node.all_input_nodes)]
    if all(each.dtype == torch.int32 and each.dim() == held[0].dim() for each in held):
        return None
    return f"{node.name} is not between int32 of one rank, as which TOSA FP computes integers"


def by_number(node: Node, look: Look) -> str | None:
    """It shifts by a number of bits that TOSA takes: FP has no choice between integers."""
    by = node.args[1]
    if isinstance(by, int) and 0 <= by <= MOST_SHIFTED:
        return None
    return (
        f"{node.name} shifts by {by}, its lowering to TOSA FP by a number from 0 to {MOST_SHIFTED}"
    )


class Numbers:
    """The operands of an operator as int32, and operators of them."""

    def __init__(self, values: Values, node: Node) -> None:
        self.node, self.operands = node, Operands(values, node, is_wide=True)
        self.call, self.given = self.operands.call, arguments(node)
        self._count = 0

    def operand(self, index: int) -> str:
        """Return an operand: a tensor or a number."""
        return self.operands.get(self.given[index], torch.int32)

    def _shape(self, *inputs: str) -> list[int]:
        shapes = [self.call.graph.shape(name) for name in inputs]
        return [max(sizes) for sizes in zip(*shapes, strict=True)]

    def _name(self, op: Op) -> str:
        self._count += 1
        return f"{op.name.lower()}_{self._count}"

    def make(self, op: Op, attribute: Any, *inputs: str) -> str:
        """Add an operator of int32."""
        return self.call.emit(op, attribute, inputs, self._name(op), self._shape(*inputs))

    def truth(self, op: Op, attribute: Any, *inputs: str) -> str:
        """Add an operator that makes truths."""
        name, shape = self.call.fresh(self._name(op)), self._shape(*inputs)
        return self.call.graph.operator(op, attribute, inputs, name, shape, DType.BOOL)

    def select(self, condition: str, yes: str, no: str) -> str:
        """Return ``yes`` where the condition holds, else ``no``."""
        name, shape = self.call.fresh(self._name(Op.SELECT)), self._shape(condition, yes, no)
        given = [condition, yes, no]
        attribute = fbs.SelectAttribute()
        return self.call.graph.operator(Op.SELECT, attribute, given, name, shape, DType.INT32)

    def number(self, value: int) -> str:
        """Return a constant of one element."""
        return self.operands.constant(value)

    def times(self, first: str, second: str) -> str:
        """Return the product."""
        name, shape = self.call.fresh(self._name(Op.MUL)), self._shape(first, second)
        return self.call.graph.multiply(first, second, name, shape)

    def add(self, first: str, second: str) -> str:
        """Return the sum."""
        return self.make(Op.ADD, fbs.AddAttribute(), first, second)

    def sub(self, first: str, second: str) -> str:
        """Return the difference."""
        return self.make(Op.SUB, fbs.SubAttribute(), first, second)

    def greater(self, first: str, second: str) -> str:
        """Return where the first is greater."""
        return self.truth(GREATER[0], GREATER[1](), first, second)

    def done(self, value: str) -> None:
        """Give out a value, of which the upper bits are dropped."""
        self.operands.done(self.call.cast(value, DTYPES[self.node.meta["val"].dtype], "narrow"))


def _scaled(n: Numbers, index: int) -> str:
    """Return an operand times ``alpha``."""
    value, alpha = n.operand(index), n.given[2]
    return value if alpha == 1 else n.times(value, n.number(alpha))


def _clamped(n: Numbers) -> str:
    value = n.operand(0)
    for index, op, attribute in ((1, Op.MAXIMUM, _most), (2, Op.MINIMUM, _least)):
        if n.given[index] is not None:
            value = n.make(op, attribute(), value, n.operand(index))
    return value


def _most() -> Any:
    return fbs.MaximumAttribute(nan_mode=PROPAGATE)


def _least() -> Any:
    return fbs.MinimumAttribute(nan_mode=PROPAGATE)


def _whole_quotient(n: Numbers) -> tuple[str, str, str]:
    first, second = n.operand(0), n.operand(1)
    return first, second, n.make(Op.INTDIV, fbs.IntDivAttribute(), first, second)


def _below(n: Numbers, first: str, second: str, quotient: str) -> tuple[str, str]:
    """Return what INTDIV leaves, and where it lies on the other side of zero than the divisor."""
    rest = n.sub(first, n.times(quotient, second))
    zero = n.number(0)
    sides = n.times(
        n.select(n.greater(zero, rest), n.number(-1), rest),
        n.select(n.greater(zero, second), n.number(-1), n.number(1)),
    )
    return rest, n.greater(zero, sides)


def _divided(n: Numbers) -> str:
    first, second, quotient = _whole_quotient(n)
    if n.node.target is not aten.floor_divide.default and n.given[2] == "trunc":
        return quotient
    _, is_other = _below(n, first, second, quotient)
    return n.select(is_other, n.sub(quotient, n.number(1)), quotient)


def _remainder(n: Numbers) -> str:
    first, second, quotient = _whole_quotient(n)
    rest, is_other = _below(n, first, second, quotient)
    return n.select(is_other, n.add(rest, second), rest)


def _shifted(n: Numbers, is_left: bool) -> str:
    """Shift as PyTorch does: by a number beyond 0 to 31 all bits are shifted out."""
    value, by, given = n.operand(0), n.operand(1), n.given[1]
    op, attribute = (
        (Op.LOGICAL_LEFT_SHIFT, fbs.LogicalLeftShiftAttribute())
        if is_left
        else (Op.ARITHMETIC_RIGHT_SHIFT, fbs.ArithmeticRightShiftAttribute(round=False))
    )
    if isinstance(given, int) and 0 <= given <= MOST_SHIFTED:
        return n.make(op, attribute, value, by)
    inside = n.truth(
        Op.LOGICAL_AND,
        fbs.LogicalAndAttribute(),
        n.truth(GREATER_EQUAL[0], GREATER_EQUAL[1](), by, n.number(0)),
        n.truth(GREATER_EQUAL[0], GREATER_EQUAL[1](), n.number(31), by),
    )
    made = n.make(op, attribute, value, n.select(inside, by, n.number(31)))
    return n.select(inside, made, n.number(0)) if is_left else made


def _reduced(n: Numbers) -> str:
    op = REDUCED[n.node.target]
    n.call.layout = "nchw"
    value = n.call.cast(n.call.get(n.call.operands[0]), DType.INT32, "wide")
    made = reduce(n.call, op, value, dims_of(n.node), "reduced")
    return n.call.reshape(made, n.call.shape, "as")


LEFT = (
    aten.__lshift__.Scalar,
    aten.__lshift__.Tensor,
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
)
RIGHT = (
    aten.__rshift__.Scalar,
    aten.__rshift__.Tensor,
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
)
REDUCED: dict[object, Op] = {
    aten.amax.default: Op.REDUCE_MAX,
    aten.amin.default: Op.REDUCE_MIN,
    aten.sum.dim_IntList: Op.REDUCE_SUM,
}
SUMS: dict[object, Formula] = {
    aten.add.Tensor: lambda n: n.add(n.operand(0), _scaled(n, 1)),
    aten.add.Scalar: lambda n: n.add(n.operand(0), _scaled(n, 1)),
    aten.sub.Tensor: lambda n: n.sub(n.operand(0), _scaled(n, 1)),
    aten.sub.Scalar: lambda n: n.sub(n.operand(0), _scaled(n, 1)),
    aten.rsub.Scalar: lambda n: n.sub(n.operand(1), _scaled(n, 0)),
    aten.mul.Tensor: lambda n: n.times(n.operand(0), n.operand(1)),
    aten.mul.Scalar: lambda n: n.times(n.operand(0), n.operand(1)),
}
"""Those that both profiles have of int32."""
PLAIN: dict[object, Formula] = {
    **SUMS,
    **dict.fromkeys(REDUCED, _reduced),
    aten.abs.default: lambda n: n.make(Op.ABS, fbs.AbsAttribute(), n.operand(0)),
    **dict.fromkeys(LEFT, lambda n: _shifted(n, is_left=True)),
    **dict.fromkeys(RIGHT, lambda n: _shifted(n, is_left=False)),
    aten.clamp.default: _clamped,
    aten.div.Scalar_mode: _divided,
    aten.div.Tensor_mode: _divided,
    aten.floor_divide.default: _divided,
    aten.maximum.default: lambda n: n.make(Op.MAXIMUM, _most(), n.operand(0), n.operand(1)),
    aten.minimum.default: lambda n: n.make(Op.MINIMUM, _least(), n.operand(0), n.operand(1)),
    aten.neg.default: lambda n: n.sub(n.number(0), n.operand(0)),
    aten.relu.default: lambda n: n.make(Op.MAXIMUM, _most(), n.operand(0), n.number(0)),
    aten.remainder.Scalar: _remainder,
    aten.remainder.Tensor: _remainder,
}
"""Operators between integers of up to 32 bits."""


def computed(values: Values, node: Node) -> None:
    """Lower to the row of ``PLAIN``."""
    numbers = Numbers(values, node)
    numbers.done(PLAIN[node.target](numbers))


def shifted_left(values: Values, node: Node) -> None:
    """Lower to LOGICAL_LEFT_SHIFT of the type as it is."""
    call = Call(values, node)
    value = call.get(call.operands[0])
    by = values.number(int(node.args[1]), len(call.shape), call.dtype)  # type: ignore[arg-type]
    attribute = fbs.LogicalLeftShiftAttribute()
    made = call.emit(Op.LOGICAL_LEFT_SHIFT, attribute, [value, by], "made", call.shape)
    values.define(node, made, call.layout)


for target in PLAIN:
    lowers(target, when=(whole_numbers, static_shape), profile=Profile.INT)(computed)
for target in SUMS:
    lowers(target, when=(whole_numbers, static_shape, alike))(computed)
for target in LEFT:
    lowers(target, when=(whole_numbers, static_shape, by_number))(shifted_left)
