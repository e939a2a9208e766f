# SPDX-License-Identifier: BSD-3-Clause
"""Values in the places that indices or truths say: SCATTER, or SELECT where one value is for all.

What several indices may name is made by comparisons, for SCATTER may write a place once only. Of
several values for a place the last is put, as eager does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.indices import (
    INDEX_PUT,
    few_places,
    float_rows,
    held_numbers,
    index_shape,
    indices_of,
    int32_index,
    kind_of,
    numbers,
    of_all,
    side_by_side,
)
from etx_backend_arm.nodes.reduce import reduce
from etx_backend_arm.nodes.table import Profile, arguments, integers, lowers, static_shape
from etx_backend_arm.quantized import Look, affine, find_step
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

MOST_COMPARED = 2**18
"""Elements of a table of indices, places and what is put there."""


class Places:
    """Where an operator puts values: ``before``, places and ``after``, as in the shape."""

    def __init__(self, node: Node) -> None:
        x, given, value, self.adds = arguments(node)
        self.shape = [int(size) for size in x.meta["val"].shape]
        self.given: Sequence[Node | None] = given
        self.indices = indices_of(node)
        self.of_value = [int(size) for size in value.meta["val"].shape]
        self.is_mask = any(each.meta["val"].dtype == torch.bool for each in self.indices)
        dims = [i for i, each in enumerate(given) if each is not None]
        if self.is_mask:
            dims = [dims[0] + i for i in range(self.indices[0].meta["val"].dim())]
        self.perms = list(range(len(self.shape)))
        if not side_by_side(dims):
            self.perms = [*dims, *(i for i in self.perms if i not in dims)]
            dims = list(range(len(dims)))
        sizes = [self.shape[i] for i in self.perms]
        self.before, self.after = sizes[: dims[0]], sizes[dims[-1] + 1 :]
        self.sizes = sizes[dims[0] : dims[-1] + 1]

    @property
    def picked(self) -> list[int]:
        """Return the shape that the indices have together; of truths one size, which varies."""
        return [1] if self.is_mask else index_shape(self.indices)

    def of_rank(self) -> list[int]:
        """Return the sizes of the value, as many as there are in what it is put into."""
        count = len(self.before) + len(self.picked) + len(self.after)
        return [1] * (count - len(self.of_value)) + self.of_value

    def is_one_value(self) -> bool:
        """Tell whether each index puts the same."""
        begin = len(self.before)
        return prod(self.of_rank()[begin : begin + len(self.picked)]) == 1

    def differ(self, look: Look) -> bool:
        """Tell whether no place is named twice: one is, or those that are known are distinct."""
        count = prod(self.picked)
        held = held_numbers(self.indices, self.sizes, look)
        return count == 1 or (held is not None and len(set(held.flatten().tolist())) == count)

    def compared(self) -> int:
        """Return how many elements a table of indices and places has."""
        pairs = prod(self.picked) * prod(self.sizes)
        return pairs * prod(self.before) * prod(self.after) if self.adds else pairs


def known_places(node: Node, look: Look) -> str | None:
    """One mask chooses where one value is, or numbers say where each is: not twice the same."""
    places = Places(node)
    if places.is_mask:
        if len(places.indices) > 1:
            return f"{node.name} puts values where several masks or numbers say so"
        if places.adds or not places.is_one_value():
            return f"{node.name} puts as many values as a mask has truths"
        return None
    refused = int32_index(node, look)
    if refused is not None:
        return refused
    if places.is_one_value() or places.adds:
        if places.compared() <= MOST_COMPARED:
            return None
        return f"{node.name} compares {places.compared()} pairs, at most {MOST_COMPARED} are"
    if places.differ(look) or places.compared() <= MOST_COMPARED:
        return None
    return (
        f"{node.name} puts several values where indices may repeat, SCATTER takes one: it compares "
        f"{places.compared()} pairs, at most {MOST_COMPARED} are"
    )


def of_one_type(node: Node, look: Look) -> str | None:
    """Value and tensor have one type, plain integers that are added are int32."""
    x, _, value, adds = arguments(node)
    types = [each.meta["val"].dtype for each in (x, value)]
    if types[0] != types[1]:
        return f"{node.name} puts {types[1]} into {types[0]}"
    if adds and types[0] in (torch.int8, torch.int16):
        return f"{node.name} adds {types[0]}, REDUCE_SUM takes int32"
    known = (torch.int8, torch.int16, torch.int32)
    if types[0].is_floating_point or types[0] in known:
        return None
    return f"{node.name} is {types[0]}, SCATTER takes int8, int16, int32"


def plain(node: Node, look: Look) -> str | None:
    """What is put holds integers."""
    dtype = node.meta["val"].dtype
    return (
        f"{node.name} holds {dtype}, whose places are compared as floats"
        if dtype.is_floating_point
        else None
    )


def all_dequantized(node: Node, look: Look) -> str | None:
    """Tensor and value are dequantized, to be added in one scale."""
    x, _, value, adds = arguments(node)
    forms = [affine(x), affine(value)]
    if forms[0] is None or forms[1] is None:
        return f"{node.name} is not between dequantized tensors"
    step = find_step(node, look)
    made = None if isinstance(step, str) else step.form
    if adds and len({(f.scale, f.zero_point) for f in (*forms, made) if f}) > 1:
        return f"{node.name} adds in several scales"
    return None


class Put:
    """Tensor, places and values as (before, places, after)."""

    def __init__(self, call: Call, places: Places) -> None:
        self.call, self.places = call, places
        self.sizes = [prod(each) for each in (places.before, places.sizes, places.after)]
        x = call.aligned(call.operands[0])
        moved = [places.shape[i] for i in places.perms]
        dtype = call.graph.dtype(x)
        x = call.graph.transpose(x, places.perms, call.fresh("in_front"), moved, dtype)
        self.moved = moved
        self.rows = call.reshape(x, self.sizes, "rows")

    def put(self) -> str:
        """Return the result as rows."""
        if self.places.adds:
            return self._sum()
        if self.places.is_mask:
            return self._where(self._mask(), self.rows, self._value(is_one=True))
        if self.places.is_one_value():
            is_there = self._is_there(*self._numbers())
            return self._where(is_there, self.rows, self._value(is_one=True))
        if not self.places.differ(self.call.values.parameter):
            return self._last()
        value, (found, _) = self._value(), self._numbers()
        operands = [self.rows, of_all(self.call, found, self.sizes[0]), value]
        return self.call.emit(Op.SCATTER, fbs.ScatterAttribute(), operands, "put", self.sizes)

    def _value(self, is_one: bool = False) -> str:
        """Return what is put as (before, indices, after), for all indices where it is one."""
        call, places = self.call, self.places
        value = call.aligned(_value_of(call.node))
        given = places.of_rank()
        value = call.reshape(value, given, "value_of_rank")
        count = [1] if is_one else places.picked
        if is_one:
            begin, end = len(places.before), len(places.before) + len(places.picked)
            given = [*given[:begin], 1, *given[end:]]
            value = call.reshape(value, given, "value_of_one")
        chosen = [*places.before, *count, *places.after]
        if given != chosen:
            times = [made // size for made, size in zip(chosen, given, strict=True)]
            operands = [value, call.graph.shape_constant(times)]
            value = call.emit(Op.TILE, fbs.TileAttribute(), operands, "value_of_each", chosen)
        return call.reshape(value, [self.sizes[0], prod(count), self.sizes[2]], "value_rows")

    def _numbers(self) -> tuple[str, int]:
        return numbers(self.call, self.places.indices, self.places.sizes)

    def _mask(self) -> str:
        (index,) = self.places.indices
        return self.call.reshape(self.call.get(index), [1, self.sizes[1], 1], "mask")

    def _pairs(self, found: str, count: int) -> str:
        """Return where an index (0) names a place (1): compared as floats in the profile FP."""
        call, length = self.call, self.sizes[1]
        kind = kind_of(call)
        held = torch.arange(length, dtype=torch.int32).reshape(1, length)
        every = call.values.constant(
            call.fresh("every"), held if kind == DType.INT32 else held.float()
        )
        column = call.cast(call.reshape(found, [count, 1], "column"), kind, "column_as")
        made = call.fresh("pairs")
        attribute = fbs.EqualAttribute()
        shape = [count, length]
        return call.graph.operator(Op.EQUAL, attribute, [column, every], made, shape, DType.BOOL)

    def _last(self) -> str:
        """Return in each place the value of the last index that names it."""
        call, (before, length, after) = self.call, self.sizes
        found, count = self._numbers()
        kind, value, pairs = kind_of(call), self._value(), self._pairs(found, count)
        order = torch.arange(count, dtype=torch.int32).reshape(count, 1)
        turns = call.values.constant(
            call.fresh("turns"), order if kind == DType.INT32 else order.float()
        )
        given = [pairs, turns, call.values.number(0, 2, kind)]
        chosen = call.graph.operator(
            Op.SELECT, fbs.SelectAttribute(), given, call.fresh("turn"), [count, length], kind
        )
        last = reduce(call, Op.REDUCE_MAX, chosen, [0], "last")
        last = of_all(call, call.cast(last, DType.INT32, "last_as"), before)
        made, dtype = call.fresh("last_value"), call.graph.dtype(value)
        shape, attribute = [before, length, after], fbs.GatherAttribute()
        picked = call.graph.operator(Op.GATHER, attribute, [value, last], made, shape, dtype)
        return self._where(self._any(pairs, count), self.rows, picked)

    def _is_there(self, found: str, count: int) -> str:
        return self._any(self._pairs(found, count), count)

    def _any(self, pairs: str, count: int) -> str:
        call, length = self.call, self.sizes[1]
        attribute = fbs.ReduceAnyAttribute(axis=0)
        if count > 1:
            pairs = call.emit(Op.REDUCE_ANY, attribute, [pairs], "is_there", [1, length])
        return call.reshape(pairs, [1, length, 1], "is_there_of_rows")

    def _where(self, condition: str, no: str, yes: str) -> str:
        dtype, given = self.call.graph.dtype(no), [condition, yes, no]
        return self.call.graph.operator(
            Op.SELECT, fbs.SelectAttribute(), given, self.call.fresh("put"), self.sizes, dtype
        )

    def _sum(self) -> str:
        """Return the tensor and the sum of what is put in each place, in the tensor's type."""
        call, (before, length, after) = self.call, self.sizes
        found, count = self._numbers()
        value, rows = self._wide(self._value(), "value"), self._wide(self.rows, "rows")
        value = call.reshape(value, [before, count, 1, after], "value_of_places")
        dtype = call.graph.dtype(value)
        pairs = call.reshape(self._pairs(found, count), [1, count, length, 1], "pairs_of_rows")
        shape = [before, count, length, after]
        given = [pairs, value, call.values.number(0, 4, dtype)]
        there = call.graph.operator(
            Op.SELECT, fbs.SelectAttribute(), given, call.fresh("there"), shape, dtype
        )
        summed = reduce(call, Op.REDUCE_SUM, there, [1], "summed")
        summed = call.reshape(summed, self.sizes, "summed_rows")
        return call.emit(Op.ADD, fbs.AddAttribute(), [rows, summed], "put", self.sizes)

    def _wide(self, value: str, suffix: str) -> str:
        call = self.call
        if call.step is None:
            is_float = call.graph.dtype(value) in (DType.FP16, DType.BF16)
            return call.as_float32(value, f"{suffix}_wider") if is_float else value
        return call.wide(value, 1.0, call.step.form.zero_point, f"{suffix}_wide")

    def back(self, rows: str) -> str:
        """Return rows in the shape and order of the tensor."""
        call, perms = self.call, self.places.perms
        made = call.reshape(rows, self.moved, "moved")
        inverse = [perms.index(i) for i in range(len(perms))]
        dtype = call.graph.dtype(made)
        return call.graph.transpose(made, inverse, call.fresh("back"), self.places.shape, dtype)


def _value_of(node: Node) -> Node:
    given: Any = arguments(node)[2]
    return given  # type: ignore[no-any-return]


def put(values: Values, node: Node) -> None:
    """Lower to SCATTER, to SELECT, or to a sum of what is chosen."""
    call = Call(values, node, "nchw")
    state = Put(call, Places(node))
    made = state.back(state.put())
    if state.places.adds and call.step is not None:
        call.done(made, call.step.form.scale)
    else:
        call.same(made)


FORM = (static_shape, known_places)
lowers(INDEX_PUT, when=(integers, all_dequantized, *FORM), profile=Profile.INT)(put)
lowers(INDEX_PUT, when=(plain, of_one_type, *FORM), profile=Profile.INT)(put)
lowers(INDEX_PUT, when=(float_rows, of_one_type, *FORM, few_places))(put)
