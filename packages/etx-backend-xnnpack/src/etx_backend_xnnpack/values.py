# SPDX-License-Identifier: BSD-3-Clause
"""The values of a partition while it is lowered: each in the orders and forms that were asked for.

A value is moved or converted only where an operator needs it otherwise, and once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import (
    DataType,
    Operator,
    PerTensor,
    Reshape,
    Transpose,
    Unary,
)
from etx_backend_xnnpack.builder import Affine, Builder, Range
from etx_backend_xnnpack.layout import Order, Size, plain
from etx_backend_xnnpack.nodes.clamps import range_of
from etx_backend_xnnpack.nodes.scales import converts
from etx_backend_xnnpack.quantized import DEQUANTIZE, QUANTIZE, Weight, affine, weight


@dataclass(frozen=True)
class Stored:
    """A value of the graph: its id, its order, and its parameters where it is int8, else the dtype
    of its numbers; `rounded` if one reader wants these numbers instead of the node's."""

    id: int
    order: Order
    affine: Affine | None = None
    dtype: DataType = DataType.FP32
    rounded: bool = False


@dataclass(frozen=True)
class Result:
    """What a node's emission defines: `node` is the last one that it takes in."""

    node: Node
    range: Range
    affine: Affine | None = None


class Values:
    """Ids of values by node; constants are arranged ahead of time."""

    def __init__(self, program: ExportedProgram, builder: Builder) -> None:
        self.builder = builder
        self.constants = Constants(program)
        self.done: set[Node] = set()
        self._stored: dict[Node, list[Stored]] = {}
        self._rows: dict[Node, tuple[int, Order]] = {}
        self._images: dict[Node, int] = {}

    def sizes(self, node: Any) -> list[Size]:
        """Return the sizes of a node's tensor in the program's order."""
        value = node.meta["val"]
        return list((value[0] if isinstance(value, (tuple, list)) else value).shape)

    def first(self, node: Node) -> Node:
        """Return the node that holds the first result of `node`, which may have several."""
        if not isinstance(node.meta["val"], (tuple, list)):
            return node
        picks = list(node.users)
        assert len(picks) == 1, f"{node}: expected one reader of its first result, found {picks}"
        self.done.add(picks[0])
        return picks[0]

    def tensor(self, node: object) -> Tensor | None:
        """Return what a constant node stands for, dequantized, or None."""
        found = self.constants.get(node)
        if found is not None:
            return found
        stored = self.weight(node)
        if stored is not None:
            return stored.real()
        integers = self.integers(node)
        if integers is None:
            return None
        tensor, at = integers
        return (tensor.to(torch.float32) - at.zero_point) * at.scale

    def integers(self, node: object) -> tuple[Tensor, Affine] | None:
        """Return the int8 constant that a node dequantizes as an activation, or None."""
        if not isinstance(node, Node) or node.target != DEQUANTIZE:
            return None
        tensor, at = self.constants.get(node.args[0]), affine(node)
        return None if tensor is None or at is None else (tensor, at)

    def weight(self, node: object) -> Weight | None:
        """Return the integers behind the dequantization of a constant, or None."""
        return weight(node, self.constants.get)

    def define(
        self,
        node: Node,
        number: int,
        order: Order,
        at: Affine | None = None,
        *,
        rounded: bool = False,
    ) -> Stored:
        """Record that a value holds `node`."""
        stored = Stored(number, order, at, self.builder.dtype, rounded)
        self._stored.setdefault(node, []).append(stored)
        return stored

    def redefine(self, node: Node, number: int, order: Order) -> None:
        """Record that another value holds `node`."""
        self._stored[node] = [Stored(number, order, None, self.builder.dtype)]

    def forms(self, node: Node) -> list[Stored]:
        """Return in what forms a node exists, the first one first."""
        return self._stored.get(node, [])

    def quantized(self, node: object) -> Stored | None:
        """Return the int8 form that holds a node's own numbers, if it has one."""
        if not isinstance(node, Node):
            return None
        found = next((f for f in self.forms(node) if f.affine and not f.rounded), None)
        constant = self.integers(node)
        if found is None and constant is not None:
            order = plain(constant[0].dim())
            return self.define(node, self.constant(node, order, constant[1]), order, constant[1])
        return found

    def natural(self, node: Node) -> Order:
        """Return the order in which a node exists, that of the program for a constant."""
        forms = self.forms(node)
        return forms[0].order if forms else plain(len(self.sizes(node)))

    def get(self, node: Any, order: Order | None = None, at: Affine | None = None) -> int:
        """Return the value of a node in `order`, in the builder's dtype or with parameters `at`."""
        order = plain(len(self.sizes(node))) if order is None else order
        exact = self._find(node, order, at)
        if exact is not None:
            return exact.id
        if self.tensor(node) is not None:
            integers = self.integers(node)
            rounded = at is not None and (integers is None or integers[1] != at)
            number = self.constant(node, order, at)
            return self.define(node, number, order, at, rounded=rounded).id
        form = self._best(node, order, at)
        if not self._fits(form, at):
            form = self._convert(node, form, at)
        if form.order != order:
            form = self._arrange(node, form, order)
        return form.id

    def real(self, node: Node) -> Stored:
        """Return the form of a node in the builder's dtype, in the order in which it exists."""
        order = self.natural(node)
        self.get(node, order)
        found = self._find(node, order, None)
        assert found is not None
        return found

    def rows(self, node: Node) -> tuple[int, Order]:
        """Return the value of a node with rows quantized at run time, and its order."""
        if node not in self._rows:
            order = self.last(node, len(self.sizes(node)) - 1)
            sizes = layout.ordered(self.sizes(node), order)
            self._rows[node] = self._at_run_time(self.get(node, order), sizes, 1), order
        return self._rows[node]

    def images(self, node: Node, order: Order) -> int:
        """Return the value of a node with images quantized at run time; rows get a height of 1."""
        if node not in self._images:
            sizes, source = layout.ordered(self.sizes(node), order), self.get(node, order)
            if len(order) == 3:
                sizes = [sizes[0], 1, *sizes[1:]]
                source = self.shaped(source, sizes)
            self._images[node] = self._at_run_time(source, sizes, 3)
        return self._images[node]

    def _at_run_time(self, source: int, sizes: list[Size], dims: int) -> int:
        number = self.builder.rows(sizes, dims)
        self.builder.node(Operator.Convert, Unary(input_id=source, output_id=number))
        return number

    def last(self, node: Node, dim: int) -> Order:
        """Return the node's order if `dim` is innermost in it, else one where it is."""
        order = self.natural(node)
        if order[-1] == dim:
            return order
        return tuple([d for d in plain(len(order)) if d != dim] + [dim])

    def result(self, node: Node, *, clamps: bool = False, quantizes: bool = False) -> Result:
        """Follow the only user of `node` while it can be part of the node that is emitted."""
        result, taken = _follow(node, clamps, quantizes)
        self.done.update(taken)
        return result

    def quantizes(self, node: Node, *, clamps: bool = False) -> Affine | None:
        """Return the parameters that `result` would find."""
        return _follow(node, clamps, quantizes=True)[0].affine

    def output(self, result: Result, order: Order) -> int:
        """Add the value that a node computes and record it; its sizes are those of the node."""
        number = self.builder.value(layout.ordered(self.sizes(result.node), order), result.affine)
        self.define(result.node, number, order, result.affine)
        return number

    def shaped(
        self,
        number: int,
        sizes: Sequence[Size],
        at: Affine | None = None,
        *,
        into: int | None = None,
    ) -> int:
        """Reshape a value; at most one of `sizes` is symbolic."""
        target = self.builder.value(sizes, at) if into is None else into
        new = [size if isinstance(size, int) else 0 for size in sizes]
        self.builder.node(
            Operator.Reshape,
            Reshape(rank=len(new), new_shape=new, input_id=number, output_id=target),
        )
        return target

    def raised(self, node: Node, wide: Sequence[Size], order: Order, at: Affine | None) -> int:
        """Return a node under `wide`, its sizes behind ones, in an order of these."""
        number = self.shaped(self.get(node, None, at), wide, at)
        target = self.builder.value(layout.ordered(wide, order), at)
        self.builder.node(
            Operator.Transpose,
            Transpose(rank=len(order), perm=list(order), input_id=number, output_id=target),
        )
        return target

    def _find(self, node: Node, order: Order, at: Affine | None) -> Stored | None:
        forms = self.forms(node)
        return next((f for f in forms if f.order == order and self._fits(f, at)), None)

    def _fits(self, form: Stored, at: Affine | None) -> bool:
        """Tell whether a form has parameters `at`, or without them the builder's dtype."""
        return form.affine == at and (at is not None or form.dtype is self.builder.dtype)

    def _best(self, node: Node, order: Order, at: Affine | None) -> Stored:
        """Return the form from which the one asked for takes the least work."""
        return min(
            self.forms(node),
            key=lambda form: (not self._fits(form, at), form.rounded, form.order != order),
        )

    def constant(
        self, node: Node, order: Order, at: Affine | None, wide: Sequence[int] | None = None
    ) -> int:
        """Store the constant `node`, its sizes `wide` if given, in `order`; int8 with `at`."""
        tensor, integers = self.tensor(node), self.integers(node)
        assert tensor is not None, f"{node} is computed by nothing in the partition"
        sizes = tensor.shape if wide is None else wide
        if at is None:
            return self.builder.constant(tensor.reshape(sizes).permute(order))
        if integers is None or integers[1] != at:
            steps = (tensor.to(torch.float32) / at.scale).round() + at.zero_point
            values = steps.clamp(-128, 127).to(torch.int8)
        else:
            values = integers[0]
        one = PerTensor(scale=at.scale, zero_point=at.zero_point)
        return self.builder.constant(
            values.reshape(sizes).permute(order), DataType.QINT8, quantization=one
        )

    def _convert(self, node: Node, form: Stored, at: Affine | None) -> Stored:
        if at and form.affine and not converts(form.affine, at):
            form = self._convert(node, form, None)
        number = self.builder.value(layout.ordered(self.sizes(node), form.order), at)
        self.builder.node(Operator.Convert, Unary(input_id=form.id, output_id=number))
        rounded = form.rounded or at is not None or self.builder.dtype is DataType.FP16
        return self.define(node, number, form.order, at, rounded=rounded)

    def _arrange(self, node: Node, form: Stored, order: Order) -> Stored:
        sizes = self.sizes(node)
        if layout.same_bytes(sizes, form.order, order):
            now, then = (layout.ordered(sizes, each) for each in (form.order, order))
            if now == then:
                number = form.id
            elif sum(not isinstance(size, int) for size in then) > 1:
                number = self._transpose(sizes, form, order)
            else:
                number = self.shaped(form.id, then, form.affine)
        else:
            number = self._transpose(sizes, form, order)
        stored = replace(form, id=number, order=order)
        self._stored[node].append(stored)
        return stored

    def _transpose(self, sizes: Sequence[Size], form: Stored, order: Order) -> int:
        number = self.builder.value(layout.ordered(sizes, order), form.affine)
        perm = [form.order.index(dim) for dim in order]
        self.builder.node(
            Operator.Transpose,
            Transpose(rank=len(perm), perm=perm, input_id=form.id, output_id=number),
        )
        return number


def _follow(node: Node, clamps: bool, quantizes: bool) -> tuple[Result, list[Node]]:
    """Return what a node's emission can define, and the users that it takes in."""
    kept, low, high = node, Range().low, Range().high
    taken: list[Node] = []
    while True:
        users = list(kept.users)
        user = users[0] if len(users) == 1 else None
        if user is None or user.op != "call_function":
            return Result(kept, Range(low, high)), taken
        bounds = range_of(user) if clamps else None
        if bounds is not None and bounds.overlaps(Range(low, high)):
            low, high = max(low, bounds.low), min(high, bounds.high)
            taken.append(user)
            kept = user
            continue
        at = affine(user) if quantizes and user.target == QUANTIZE else None
        if at is None:
            return Result(kept, Range(low, high)), taken
        return Result(user, Range(low, high), at), [*taken, user]
