# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons, truths and bits: in both profiles, of the types that each has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.nodes.arithmetic import WIDE_HEADROOM as HEADROOM
from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.reduce import dims_of
from etx_backend_arm.nodes.table import FLOATS, Check, Profile, integers, lowers, static_shape
from etx_backend_arm.quantized import Affine, Look, affine
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, Values

aten = torch.ops.aten
INTEGERS = (torch.int8, torch.int16, torch.int32)
GREATER = (Op.GREATER, fbs.GreaterAttribute)
GREATER_EQUAL = (Op.GREATER_EQUAL, fbs.GreaterEqualAttribute)
EQUAL = (Op.EQUAL, fbs.EqualAttribute)
Kind = tuple[Op, Callable[[], Any]]

COMPARISONS: dict[object, tuple[Kind, bool]] = {
    aten.eq: (EQUAL, False),
    aten.ge: (GREATER_EQUAL, False),
    aten.gt: (GREATER, False),
    aten.le: (GREATER_EQUAL, True),
    aten.lt: (GREATER, True),
    aten.ne: (EQUAL, False),
}
"""The operator, and whether its operands change places; `ne` is not equal."""
BITS: dict[object, tuple[Kind, Kind]] = {
    aten.bitwise_and: (
        (Op.LOGICAL_AND, fbs.LogicalAndAttribute),
        (Op.BITWISE_AND, fbs.BitwiseAndAttribute),
    ),
    aten.bitwise_or: (
        (Op.LOGICAL_OR, fbs.LogicalOrAttribute),
        (Op.BITWISE_OR, fbs.BitwiseOrAttribute),
    ),
    aten.bitwise_xor: (
        (Op.LOGICAL_XOR, fbs.LogicalXorAttribute),
        (Op.BITWISE_XOR, fbs.BitwiseXorAttribute),
    ),
}
"""Of truths and of integers."""
LOGICAL = {
    aten.logical_and.default: BITS[aten.bitwise_and][0],
    aten.logical_or.default: BITS[aten.bitwise_or][0],
    aten.logical_xor.default: BITS[aten.bitwise_xor][0],
}
ANY = (aten.any.default, aten.any.dim, aten.any.dims)


def _types(node: Node) -> set[torch.dtype]:
    return {each.meta["val"].dtype for each in node.all_input_nodes}


def of_type(*dtypes: torch.dtype) -> Check:
    """Return a check: all operands have one of these types, the same each."""

    def check(node: Node, look: Look) -> str | None:
        found = _types(node)
        if len(found) == 1 and found <= set(dtypes):
            return None
        said = ", ".join(sorted(map(str, found)))
        return f"{node.name} reads {said}, its lowering takes {', '.join(map(str, dtypes))}"

    return check


def numbers_of_type(node: Node, look: Look) -> str | None:
    """An operand that is a number is one of the other operand's type."""
    for each in node.args[:2]:
        if isinstance(each, (int, float)) and not _fits(each, _types(node)):
            return f"{each}, an operand of {node.name}, is not a number of the other's type"
    return None


def _fits(number: float, types: set[torch.dtype]) -> bool:
    if types == {torch.bool}:
        return number in (0, 1)
    if types <= set(INTEGERS):
        bounds = torch.iinfo(next(iter(types)))
        return bounds.min <= number <= bounds.max and number == int(number)
    return types <= set(FLOATS)


class Operands:
    """All operands of an operator, numbers too, in one layout and of the result's rank."""

    def __init__(self, values: Values, node: Node, is_wide: bool = False) -> None:
        self.call = Call(values, node)
        self.rank = node.meta["val"].dim()
        if any(each.meta["val"].dim() != self.rank for each in node.all_input_nodes):
            self.call.layout = "nchw"
        self.is_wide = is_wide

    def get(self, given: Any, dtype: torch.dtype) -> str:
        """Return an operand; integers and truths as int32 where that is asked for."""
        call, graph = self.call, self.call.graph
        wide = torch.int32 if self.is_wide and dtype not in FLOATS else dtype
        if not isinstance(given, Node):
            return call.values.number(given, self.rank, DTYPES[wide])
        name = self._of_rank(call.get(given), given)
        if graph.dtype(name) == DTYPES[wide]:
            return name
        made = call.fresh(f"wide_{given.name}")
        if made in graph:
            return made
        shape, attribute = graph.shape(name), fbs.CastAttribute()
        return graph.operator(Op.CAST, attribute, [name], made, shape, DTYPES[wide])

    def constant(self, integer: int) -> str:
        """Return a constant of one element, int32."""
        return self.call.values.number(integer, self.rank, DType.INT32)

    def _of_rank(self, name: str, node: Node) -> str:
        sizes = self.call.graph.shape(name)
        if len(sizes) == self.rank:
            return name
        shape = [1] * (self.rank - len(sizes)) + sizes
        return self.call.reshape(name, shape, f"{node.name}_of_rank")

    def aligned(self, node: Any) -> str:
        """Return integers in the scale of the result."""
        return self._of_rank(self.call.aligned(node), node)

    def wide(self, node: Any, scale: float) -> str:
        """Return integers above their zero point as int32, times ``scale``."""
        call, made = self.call, self.call.fresh(f"wide_{node.name}")
        if made in call.graph:
            return made
        point, name = call.form(node).zero_point, self._of_rank(call.get(node), node)
        return call.wide(name, scale, point, f"wide_{node.name}")

    def in_one_scale(self, nodes: list[Any]) -> list[str]:
        """Return integers as int32 in one scale: as they are where they have it already."""
        scales = [self.call.form(node).scale for node in nodes]
        unit = scales[0] if scales[0] == scales[1] else max(scales) / HEADROOM
        return [self.wide(node, scale / unit) for node, scale in zip(nodes, scales, strict=True)]

    def truth(self, kind: Kind, operands: list[str], suffix: str) -> str:
        """Add an operator that makes truths."""
        op, attribute = kind
        name, shape = self.call.fresh(suffix), self.call.shape
        return self.call.graph.operator(op, attribute(), operands, name, shape, DType.BOOL)

    def opposite(self, value: str) -> str:
        """Return what is true where ``value`` is not."""
        return self.truth((Op.LOGICAL_NOT, fbs.LogicalNotAttribute), [value], "not")

    def done(self, value: str) -> None:
        """Give out a value."""
        self.call.values.define(self.call.node, value, self.call.layout)


def compared(values: Values, node: Node) -> None:
    """Lower to EQUAL, GREATER or GREATER_EQUAL; TOSA compares int32 and floats."""
    packet = node.target.overloadpacket  # type: ignore[union-attr]
    kind, is_turned = COMPARISONS[packet]
    (dtype,) = _types(node)
    operands = Operands(values, node, is_wide=True)
    pair = [operands.get(each, dtype) for each in node.args[:2]]
    made = operands.truth(kind, pair[::-1] if is_turned else pair, "compared")
    operands.done(operands.opposite(made) if packet is aten.ne else made)


def combined(values: Values, node: Node) -> None:
    """Lower to LOGICAL_AND and its like of truths, to BITWISE_AND and its like of integers."""
    (dtype,) = _types(node)
    packet = node.target.overloadpacket  # type: ignore[union-attr]
    operands = Operands(values, node)
    pair = [operands.get(each, dtype) for each in node.args[:2]]
    if dtype == torch.bool:
        kind = LOGICAL[node.target] if node.target in LOGICAL else BITS[packet][0]
        operands.done(operands.truth(kind, pair, "made"))
        return
    op, attribute = BITS[packet][1]
    operands.done(operands.call.emit(op, attribute(), pair, "made", operands.call.shape))


def turned(values: Values, node: Node) -> None:
    """Lower to LOGICAL_NOT of truths, to BITWISE_NOT of integers."""
    (dtype,) = _types(node)
    operands = Operands(values, node)
    value = operands.get(node.args[0], dtype)
    if dtype == torch.bool:
        operands.done(operands.opposite(value))
        return
    call, attribute = operands.call, fbs.BitwiseNotAttribute()
    operands.done(call.emit(Op.BITWISE_NOT, attribute, [value], "not", call.shape))


def any_of(values: Values, node: Node) -> None:
    """Lower to REDUCE_ANY along each dimension."""
    call = Call(values, node, "nchw")
    value = call.get(call.operands[0])
    whole = range(len(call.graph.shape(value)))
    for dim in whole if node.target is ANY[0] else dims_of(node):
        shape = call.graph.shape(value)
        shape[dim] = 1
        value = call.emit(
            Op.REDUCE_ANY, fbs.ReduceAnyAttribute(axis=dim), [value], f"any_{dim}", shape
        )
    values.define(node, call.reshape(value, call.shape, "as"), call.layout)


def chosen_types(*dtypes: torch.dtype) -> Check:
    """Return a check: a truth chooses between two tensors of one of these types."""

    def check(node: Node, look: Look) -> str | None:
        condition, *both = (each.meta["val"].dtype for each in node.args[:3])  # type: ignore[union-attr]
        if condition == torch.bool and both[0] == both[1] and both[0] in dtypes:
            return None
        return f"{node.name} chooses by {condition} between {both[0]} and {both[1]}"

    return check


def chosen(values: Values, node: Node) -> None:
    """Lower to SELECT."""
    operands, made = Operands(values, node), node.meta["val"].dtype
    condition, *pair = node.args
    _select(operands, operands.get(condition, torch.bool), [operands.get(p, made) for p in pair])


def _select(operands: Operands, condition: str, pair: list[str]) -> None:
    call = operands.call
    dtype, attribute = DTYPES[call.node.meta["val"].dtype], fbs.SelectAttribute()
    name, given = call.fresh("chosen"), [condition, *pair]
    operands.done(call.graph.operator(Op.SELECT, attribute, given, name, call.shape, dtype))


def by_truths(node: Node, look: Look) -> str | None:
    """The condition is a tensor of truths."""
    condition = node.args[0].meta["val"].dtype  # type: ignore[union-attr]
    return None if condition == torch.bool else f"{node.name} chooses by {condition}"


def chosen_integers(values: Values, node: Node) -> None:
    """Lower to SELECT between integers in the scale of the result."""
    operands = Operands(values, node)
    condition, *pair = node.args
    call = operands.call
    given = [operands.get(condition, torch.bool), *map(operands.aligned, pair)]
    name = call.fresh("chosen")
    dtype = call.graph.dtype(given[1])
    made = call.graph.operator(Op.SELECT, fbs.SelectAttribute(), given, name, call.shape, dtype)
    call.same(made)


def between_integers(node: Node, look: Look) -> str | None:
    """Both operands are dequantized to the same type, or one is a number."""
    forms = [affine(each) for each in node.all_input_nodes]
    if all(forms) and len({form.dtype for form in forms if form}) == 1:
        return None
    return f"the operands of {node.name} are not dequantized from integers of one type"


def compared_integers(values: Values, node: Node) -> None:
    """Lower to a comparison of integers: with what a number is next to, or in one scale."""
    packet = node.target.overloadpacket  # type: ignore[union-attr]
    operands = Operands(values, node)
    first, second = node.args[:2]
    kind, is_turned = COMPARISONS[packet]
    if isinstance(second, Node):
        pair = operands.in_one_scale([first, second])
    else:
        kind, is_turned, bound = _bound(operands.call.form(first), packet, second)  # type: ignore[arg-type]
        pair = [operands.wide(first, 1.0), operands.constant(bound)]
    made = operands.truth(kind, pair[::-1] if is_turned else pair, "compared")
    operands.done(operands.opposite(made) if packet is aten.ne else made)


def _bound(form: Affine, packet: Any, number: float) -> tuple[Kind, bool, int]:
    """Return the comparison of integers that is the program's with ``number``, above zero points.

    It is looked up in what each integer stands for, in float32 as the program computes it.
    """
    integers = torch.arange(form.low, form.high + 1)
    reals = (integers - form.zero_point).float() * form.scale
    true = packet.Scalar(reals, number)
    places = (true if packet in (aten.eq, aten.ge, aten.gt) else ~true).nonzero()
    first = int(integers[places[0, 0]]) if len(places) else form.high + 1
    bound = first - form.zero_point
    if packet in (aten.eq, aten.ne):
        return EQUAL, False, bound
    return (GREATER_EQUAL, False, bound) if packet in (aten.ge, aten.gt) else (GREATER, True, bound)


def mask_of_type(*dtypes: torch.dtype) -> Check:
    """Return a check: truths say where a number stands in a tensor of one of these types."""

    def check(node: Node, look: Look) -> str | None:
        given, mask = (n.meta["val"].dtype for n in node.args[:2])  # type: ignore[union-attr]
        number: Any = node.args[2]
        if mask == torch.bool and given in dtypes and _fits(number, {given}):
            return None
        return f"{node.name} puts {number} into {given} where {mask} says so"

    return check


def filled(values: Values, node: Node) -> None:
    """Lower to SELECT between a number and the tensor."""
    given, mask, number = node.args
    operands, made = Operands(values, node), node.meta["val"].dtype
    pair = [operands.get(each, made) for each in (number, given)]
    _select(operands, operands.get(mask, torch.bool), pair)


def filled_integers(values: Values, node: Node) -> None:
    """Lower to SELECT between a number and the tensor, both in the scale of the result."""
    given, mask, number = node.args
    operands = Operands(values, node)
    call = operands.call
    assert call.step is not None
    form = call.step.form
    held = values.number(form.integer(float(number)), operands.rank, DTYPES[form.dtype])  # type: ignore[arg-type]
    pair = [operands.get(mask, torch.bool), held, operands.aligned(given)]
    name, dtype = call.fresh("chosen"), DTYPES[form.dtype]
    made = call.graph.operator(Op.SELECT, fbs.SelectAttribute(), pair, name, call.shape, dtype)
    call.same(made)


def by_mask(node: Node, look: Look) -> str | None:
    """The mask is of truths."""
    mask = node.args[1].meta["val"].dtype  # type: ignore[union-attr]
    return None if mask == torch.bool else f"{node.name} fills by {mask}"


def _in_both(target: object, *when: Check) -> Callable[[Callable[..., None]], None]:
    def register(emit: Callable[..., None]) -> None:
        for profile in Profile:
            lowers(target, when=(static_shape, *when), profile=profile)(emit)

    return register


for packet in COMPARISONS:
    for target in (packet.Tensor, packet.Scalar):  # type: ignore[attr-defined]
        small = (static_shape, of_type(torch.bool, *INTEGERS), numbers_of_type)
        floats = (static_shape, of_type(torch.bool, *FLOATS), numbers_of_type)
        both = (static_shape, between_integers)
        lowers(target, when=both, profile=Profile.INT)(compared_integers)
        lowers(target, when=small, profile=Profile.INT)(compared)
        lowers(target, when=floats)(compared)
for packet in BITS:
    for target in (packet.Tensor, packet.Scalar):  # type: ignore[attr-defined]
        _in_both(target, of_type(torch.bool), numbers_of_type)(combined)
        bits = (static_shape, of_type(*INTEGERS), numbers_of_type)
        lowers(target, when=bits, profile=Profile.INT)(combined)
for target in LOGICAL:
    _in_both(target, of_type(torch.bool))(combined)
for target in (aten.logical_not.default, aten.bitwise_not.default):
    _in_both(target, of_type(torch.bool))(turned)
lowers(aten.bitwise_not.default, when=(static_shape, of_type(*INTEGERS)), profile=Profile.INT)(
    turned
)
for target in ANY:
    _in_both(target, of_type(torch.bool))(any_of)
for target, check in ((aten.where.self, chosen_types), (aten.masked_fill.Scalar, mask_of_type)):
    emit = chosen if check is chosen_types else filled
    whole = (static_shape, check(torch.bool, *INTEGERS))
    lowers(target, when=whole, profile=Profile.INT)(emit)
    lowers(target, when=(static_shape, check(torch.bool, *FLOATS)))(emit)
lowers(aten.where.self, when=(integers, static_shape, by_truths), profile=Profile.INT)(
    chosen_integers
)
lowers(aten.masked_fill.Scalar, when=(integers, static_shape, by_mask), profile=Profile.INT)(
    filled_integers
)
