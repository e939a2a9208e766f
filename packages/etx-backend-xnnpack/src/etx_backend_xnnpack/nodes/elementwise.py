# SPDX-License-Identifier: BSD-3-Clause
"""Operators of each element, and of pairs of elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from etx_exir.ir.ops import arguments
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import DataType, Elu, LeakyRelu, Operator, Unary
from etx_backend_xnnpack.builder import Affine, Range
from etx_backend_xnnpack.layout import Order, plain
from etx_backend_xnnpack.nodes.clamps import BOUNDS, range_of
from etx_backend_xnnpack.nodes.scales import fits, holds, number_scale
from etx_backend_xnnpack.nodes.table import lowers, shape_of
from etx_backend_xnnpack.quantized import argument
from etx_backend_xnnpack.values import Result, Values

aten = torch.ops.aten

UNARY = {
    aten.abs.default: Operator.Abs,
    aten.ceil.default: Operator.Ceiling,
    aten.cos.default: Operator.Cos,
    aten.exp.default: Operator.Exp,
    aten.floor.default: Operator.Floor,
    aten.hardswish.default: Operator.Hardswish,
    aten.log.default: Operator.Log,
    aten.neg.default: Operator.Negate,
    aten.sigmoid.default: Operator.Sigmoid,
    aten.sin.default: Operator.Sin,
    aten.sqrt.default: Operator.SquareRoot,
    aten.tanh.default: Operator.Tanh,
}

Make = Callable[[int, int], Any]
"""Make a node's payload of the ids of its input and output."""


def payload(source: int, target: int) -> Unary:
    """Return the payload of a node without parameters."""
    return Unary(input_id=source, output_id=target)


def put(
    values: Values, node: Node, kind: Operator, make: Make = payload, clamp: Any = None
) -> None:
    """Emit an operator of each element, in int8 if its argument and its result are."""
    source: Any = node.args[0]
    form, at = values.quantized(source), values.quantizes(node)
    if kind is Operator.LeakyRelu and form and form.affine and at:
        slope = abs(float(argument(node, "negative_slope")))
        steps = (form.affine, Affine(slope * form.affine.scale, 0))
        form = form if all(holds(step, at) for step in steps) else None
    result = values.result(node, quantizes=form is not None)
    order = form.order if form and result.affine else values.natural(source)
    at = form.affine if form and result.affine else None
    number = values.get(source, order, at)
    values.builder.node(kind, make(number, values.output(result, order)), clamp)


WIDE = (Operator.Cos, Operator.Exp, Operator.Log, Operator.Sin, Operator.SquareRoot)
SIMPLE = (Operator.Abs, Operator.Ceiling, Operator.Floor, Operator.Negate)
for target, kind in UNARY.items():
    lowers(
        target,
        int8=True,
        whole=target is aten.hardswish.default,
        wide=kind in WIDE,
        kind="arithmetic" if kind in SIMPLE else "function",
    )(partial(put, kind=kind))


@lowers(
    aten.gelu.default,
    int8=True,
    wide=True,
    note="a node; tanh's approximation in eight",
    kind="function",
)
def gelu(values: Values, node: Node) -> None:
    """Emit a node, or tanh's approximation."""
    if argument(node, "approximate") == "none":
        put(values, node, Operator.Gelu)
        return
    x = Chain(values, node)
    y = x.scale(x.given, math.sqrt(2 / math.pi))
    cube = x.scale(x.unary(Operator.Square, x.given), 0.044715)
    y = x.unary(Operator.Tanh, x.binary(Operator.Multiply, y, x.add(cube, 1.0)))
    half = x.scale(x.given, 0.5)
    x.finish(Operator.Multiply, half, x.add(y, 1.0))


@lowers(aten.leaky_relu.default, int8=True)
def leaky_relu(values: Values, node: Node) -> None:
    """Emit a node."""
    slope = float(argument(node, "negative_slope"))
    put(
        values,
        node,
        Operator.LeakyRelu,
        lambda i, o: LeakyRelu(negative_slope=slope, input_id=i, output_id=o),
    )


def plain_elu(node: Node, constants: Constants) -> str | None:
    """Require the scales that XNNPACK's has."""
    for name in ("scale", "input_scale"):
        if argument(node, name) != 1:
            return f"{name} is {argument(node, name)}; XNNPACK's has none"
    alpha = argument(node, "alpha")
    return None if alpha > 0 else f"alpha is {alpha}; expected more than 0"


@lowers(aten.elu.default, when=[plain_elu], int8=True, kind="function")
def elu(values: Values, node: Node) -> None:
    """Emit a node."""
    alpha = float(argument(node, "alpha"))
    put(values, node, Operator.Elu, lambda i, o: Elu(alpha=alpha, input_id=i, output_id=o))


def has_range(node: Node, constants: Constants) -> str | None:
    """Require bounds with something between them."""
    return None if range_of(node) else "its bounds leave no range"


@lowers(*BOUNDS, when=[has_range], int8=True)
def clamp(values: Values, node: Node) -> None:
    """Emit a clamp that no node before it took in, or two bounds.

    XNNPACK joins a clamp with the node before it, to an empty range if theirs do not overlap.
    """
    source: Any = node.args[0]
    builder, bounds = values.builder, range_of(node)
    assert bounds is not None
    form = values.quantized(source)
    form = form if form and builder.range(form.id).overlaps(bounds) else None
    result = values.result(node, quantizes=form is not None)
    order = form.order if form and result.affine else values.natural(source)
    number = values.get(source, order, result.affine)
    target = values.output(result, order)
    if builder.range(number).overlaps(bounds):
        builder.node(Operator.Clamp, payload(number, target), bounds)
        return
    part, high = builder.value(builder.sizes(target)), builder.number(bounds.high)
    builder.binary(Operator.Minimum, number, high, part)
    builder.binary(Operator.Maximum, part, builder.number(bounds.low), target)


class Chain:
    """Several nodes that stand for one operator of each element, in the order of its argument."""

    def __init__(self, values: Values, node: Node, order: Order | None = None) -> None:
        source: Any = node.args[0]
        self.values, self.node, self.builder = values, node, values.builder
        self.order = values.natural(source) if order is None else order
        self.sizes = layout.ordered(values.sizes(source), self.order)
        self.given = values.get(source, self.order)

    def unary(self, kind: Operator, number: int) -> int:
        """Add a node; return its value."""
        return self.builder.unary(kind, number, self.builder.value(self.sizes))

    def binary(self, kind: Operator, a: int, b: int, clamp: Range | None = None) -> int:
        """Add a node of two values; return its value."""
        return self.builder.binary(kind, a, b, self.builder.value(self.sizes), clamp)

    def scale(self, a: int, by: float) -> int:
        """Multiply with a number."""
        return self.binary(Operator.Multiply, a, self.builder.number(by))

    def add(self, a: int, number: float) -> int:
        """Add a number."""
        return self.binary(Operator.Add, a, self.builder.number(number))

    def finish(self, kind: Operator, a: int, b: int, clamp: Range | None = None) -> None:
        """Add the last node, whose value is the operator's."""
        target = self.values.output(self.values.result(self.node), self.order)
        self.builder.binary(kind, a, b, target, clamp)


PART_OF_ONE = Affine(1 / 256, -128)


@lowers(aten.silu.default, whole=True, int8=True, kind="function")
def silu(values: Values, node: Node) -> None:
    """Emit x * sigmoid(x)."""
    source: Any = node.args[0]
    form, at = values.quantized(source), values.quantizes(node)
    if form and form.affine and at and fits(Operator.Multiply, (form.affine, PART_OF_ONE), at):
        result = values.result(node, quantizes=True)
        sizes = layout.ordered(values.sizes(source), form.order)
        part = values.builder.value(sizes, PART_OF_ONE)
        values.builder.unary(Operator.Sigmoid, form.id, part)
        target = values.output(result, form.order)
        values.builder.binary(Operator.Multiply, form.id, part, target)
        return
    x = Chain(values, node)
    x.finish(Operator.Multiply, x.given, x.unary(Operator.Sigmoid, x.given))


@lowers(aten.hardsigmoid.default, whole=True, int8=True)
def hardsigmoid(values: Values, node: Node) -> None:
    """Emit x / 6 + 0.5, clamped to 0 to 1."""
    source: Any = node.args[0]
    form, at = values.quantized(source), values.quantizes(node)
    if form and form.affine and at:
        sixth, half = Affine(1 / 6 / 127, 0), Affine(0.5 / 127, 0)
        part = Affine(form.affine.scale / 6, form.affine.zero_point)
        if fits(Operator.Add, (part, half), at):
            result = values.result(node, quantizes=True)
            scaled = values.builder.value(layout.ordered(values.sizes(source), form.order), part)
            by = values.builder.number(1 / 6, sixth)
            values.builder.binary(Operator.Multiply, form.id, by, scaled)
            target = values.output(result, form.order)
            added = values.builder.number(0.5, half)
            values.builder.binary(Operator.Add, scaled, added, target, Range(0.0, 1.0))
            return
    x = Chain(values, node)
    x.finish(Operator.Add, x.scale(x.given, 1 / 6), x.builder.number(0.5), Range(0.0, 1.0))


@lowers(aten.reciprocal.default)
def reciprocal(values: Values, node: Node) -> None:
    """Emit 1 / x."""
    x = Chain(values, node)
    x.finish(Operator.Div, x.builder.number(1.0), x.given)


@lowers(aten.rsqrt.default, int8=True, kind="function", note="1 / sqrt(x) in float32")
def rsqrt(values: Values, node: Node) -> None:
    """Emit the reciprocal of a root: the node has no number for zero in float32."""
    source: Any = node.args[0]
    int8 = values.quantized(source) and values.quantizes(node)
    if int8 or values.builder.dtype is not DataType.FP32:
        put(values, node, Operator.ReciprocalSquareRoot)
        return
    x = Chain(values, node)
    x.finish(Operator.Div, x.builder.number(1.0), x.unary(Operator.SquareRoot, x.given))


POWERS = {2.0: Operator.Square, 0.5: Operator.SquareRoot}


def known_power(node: Node, constants: Constants) -> str | None:
    """Require an exponent that one or two nodes compute."""
    given = node.args[1]
    return (
        None
        if given in POWERS or given in (-0.5, 3)
        else f"the exponent is {given}; 2, 3, 0.5, -0.5"
    )


@lowers(aten.pow.Tensor_Scalar, when=[known_power])
def power(values: Values, node: Node) -> None:
    """Emit a node, or a product with the square."""
    exponent: Any = node.args[1]
    if exponent == 0.5:
        values.builder.dtype = DataType.FP32
    if exponent in POWERS:
        put(values, node, POWERS[float(exponent)])
        return
    if exponent == -0.5:
        rsqrt(values, node)
        return
    x = Chain(values, node)
    x.finish(Operator.Multiply, x.given, x.unary(Operator.Square, x.given))


@lowers(aten.square.default, int8=True, whole=True)
def square(values: Values, node: Node) -> None:
    """Emit a node."""
    put(values, node, Operator.Square)


BINARY = {
    aten.add.Tensor: Operator.Add,
    aten.add.Scalar: Operator.Add,
    aten.sub.Tensor: Operator.Subtract,
    aten.sub.Scalar: Operator.Subtract,
    aten.rsub.Scalar: Operator.Subtract,
    aten.mul.Tensor: Operator.Multiply,
    aten.mul.Scalar: Operator.Multiply,
    aten.div.Tensor: Operator.Div,
    aten.div.Scalar: Operator.Div,
    aten.maximum.default: Operator.Maximum,
    aten.minimum.default: Operator.Minimum,
}
IN_INT8 = (Operator.Add, Operator.Subtract, Operator.Multiply)


def no_alpha(node: Node, constants: Constants) -> str | None:
    """Require that nothing is scaled before it is added."""
    alpha = arguments(node).get("alpha", 1)
    return None if alpha == 1 else f"alpha is {alpha}; XNNPACK's has none"


def common_order(values: Values, node: Node, sources: list[Any]) -> Order:
    """Return the order in which most of what is combined exists."""
    rank = len(values.sizes(node))
    kept = [
        source
        for source in sources
        if isinstance(source, Node)
        and values.forms(source)
        and values.tensor(source) is None
        and len(values.sizes(source)) == rank
    ]
    if not kept:
        return plain(rank)
    largest = max(kept, key=lambda source: math.prod(map(layout.hint, values.sizes(source))))
    return values.natural(largest)


def operand(values: Values, source: Any, order: Order, at: Affine | None = None) -> int:
    """Return a number or a tensor, which may have fewer dimensions, in `order`."""
    if not isinstance(source, Node):
        return values.builder.number(float(source), at)
    sizes = values.sizes(source)
    if len(sizes) == len(order):
        return values.get(source, order, at)
    if order == plain(len(order)):
        return values.get(source, None, at)
    wide = [1] * (len(order) - len(sizes)) + sizes
    if values.tensor(source) is not None:
        return values.constant(source, order, at, wide)
    return values.raised(source, wide, order, at)


def in_int8(
    values: Values, node: Node, kind: Operator, sources: list[Any]
) -> tuple[Affine, Affine] | None:
    """Return the parameters of both arguments where int8 computes it, None where float does."""
    result = values.quantizes(node, clamps=True)
    if kind not in IN_INT8 or result is None:
        return None
    forms = [values.quantized(source) for source in sources]
    at = [form.affine if form else None for form in forms]
    if at == [None, None]:
        return None
    for i, source in enumerate(sources):
        if not isinstance(source, Node):
            at[i] = number_scale(kind, float(source), result)
    if at[0] is None or at[1] is None or not fits(kind, (at[0], at[1]), result):
        return None
    return at[0], at[1]


def binary(values: Values, node: Node, kind: Operator, sources: list[Any] | None = None) -> None:
    """Emit an operator of two, in int8 if all are and XNNPACK has it."""
    given = list(node.args[:2]) if sources is None else sources
    order = common_order(values, node, given)
    at = in_int8(values, node, kind, given)
    result = values.result(node, clamps=True, quantizes=at is not None)
    if at is None:
        numbers = [operand(values, source, order) for source in given]
    else:
        numbers = [operand(values, s, order, a) for s, a in zip(given, at, strict=True)]
    emit_binary(values, kind, numbers, result, order)


def emit_binary(
    values: Values, kind: Operator, numbers: list[int], result: Result, order: Order
) -> None:
    """Add the node of two values."""
    target = values.output(result, order)
    values.builder.binary(kind, numbers[0], numbers[1], target, result.range)


def reverse(values: Values, node: Node) -> None:
    """Emit the difference the other way round."""
    binary(values, node, Operator.Subtract, [node.args[1], node.args[0]])


for target, kind in BINARY.items():
    emit = reverse if target is aten.rsub.Scalar else partial(binary, kind=kind)
    lowers(target, when=[no_alpha], int8=kind in IN_INT8)(emit)


def channel_slopes(node: Node, constants: Constants) -> str | None:
    """Require one constant slope, or one a channel."""
    slopes: Any = node.args[1]
    if constants.get(slopes) is None:
        return "its slopes are computed at run time"
    sizes = shape_of(slopes)
    dim = 1 if len(shape_of(node)) > 1 else 0
    if math.prod(sizes) not in (1, shape_of(node)[dim]):
        return f"{math.prod(sizes)} slopes; expected one, or one a channel"
    return None


@lowers(aten._prelu_kernel.default, aten.prelu.default, when=[channel_slopes], whole=True)
def prelu(values: Values, node: Node) -> None:
    """Emit a node, with the channels innermost where each has a slope."""
    source, slopes = node.args
    order = values.natural(source)  # type: ignore[arg-type]
    rank, tensor = len(values.sizes(node)), values.tensor(slopes)
    assert tensor is not None
    if rank > 1 and order[-1] != 1 and tensor.numel() > 1:
        order = tuple([dim for dim in range(rank) if dim != 1] + [1])
    result = values.result(node)
    numbers = [values.get(source, order), values.builder.constant(tensor.reshape(-1))]
    emit_binary(values, Operator.PReLU, numbers, result, order)
