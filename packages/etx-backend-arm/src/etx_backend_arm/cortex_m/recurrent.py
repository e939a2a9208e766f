# SPDX-License-Identifier: BSD-3-Clause
"""``lstm(x)`` -> products, sums and tables of each step, all of them operators with integers.

``lstm_cell``, ``gru``, ``gru_cell``, ``rnn_tanh``, ``rnn_relu`` and their cells likewise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from etx_exir.ir.ops import arguments
from etx_quant.constants import add_constant
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten
MOST_STEPS = 256
"""Of longer sequences, matrices are integers and states float."""


def unroll(model: GraphModule, is_taken: Callable[[Node], bool]) -> None:
    """Rewrite the recurrent operators for which `is_taken` and whose steps are known."""
    for target, rewrite in FORMS.items():
        for node in model.graph.find_nodes(op="call_function", target=target):
            if not is_taken(node):
                continue
            with model.graph.inserting_before(node):
                made = rewrite(Steps(model, node))
            if made is None:
                continue
            if isinstance(made, Node):
                node.replace_all_uses_with(made)
            else:
                for picked in list(node.users):
                    picked.replace_all_uses_with(made[picked.args[1]])
                    model.graph.erase_node(picked)
            model.graph.erase_node(node)
    model.graph.eliminate_dead_code()
    model.recompile()


@dataclass(frozen=True)
class Steps:
    """What an operator becomes, in front of it."""

    model: GraphModule
    node: Node

    def call(self, target: Any, *args: Any) -> Node:
        """Add an operator of the same module."""
        value = target(*tree_map_only(Node, lambda n: n.meta["val"], args))
        made = self.node.graph.call_function(target, args)
        made.meta = {**self.node.meta, "val": value}
        made.meta.pop("tensor_meta", None)
        return made

    def arguments(self) -> list[Any]:
        """Return the operator's arguments, with defaults."""
        return list(arguments(self.node).values())

    def part(self, gates: Node, begin: int, count: int) -> Node:
        """Return columns of gates (batch, gates)."""
        return self.call(aten.slice.Tensor, gates, 1, begin, begin + count)

    def held(self, node: Node | None) -> Tensor | None:
        """Return a parameter."""
        if node is None or node.op != "get_attr":
            return None
        found: Tensor = operator.attrgetter(str(node.target))(self.model)
        return found.detach()

    def constant(self, value: Tensor, like: Node, name: str) -> Node:
        """Add a constant."""
        return add_constant(self.model, f"{self.node.name}_{name}", value, like.meta["val"])

    def state(self, node: Node, index: int | None = None) -> Node | None:
        """Return a first state, or that of a layer and direction; None for zeros."""
        value = self.held(node)
        zeros = (aten.zeros.default, aten.zeros_like.default)
        if node.target in zeros or (value is not None and not bool(value.any())):
            return None
        return node if index is None else self.call(aten.select.int, node, 0, index)


@dataclass(frozen=True)
class Weights:
    """Matrices of the input and of the state, and what is added to their products."""

    of_input: Node
    of_state: Node
    first: Node | None = None
    second: Node | None = None


State = tuple[Node | None, ...]
Cell = Callable[[Steps, Node, State, Weights], tuple[Node, ...]]
"""From the product with the input, (batch, gates), and the states (batch, size) to new states."""


def _sum(steps: Steps, product: Node, state: Node | None, weights: Weights) -> Node:
    """Add the product with the state; only its bias where it is zero."""
    if state is not None:
        more = steps.call(aten.linear.default, state, weights.of_state, weights.second)
        return steps.call(aten.add.Tensor, product, more)
    bias = _first_bias(steps, product, weights)
    return product if bias is None else steps.call(aten.add.Tensor, product, bias)


def _first_bias(steps: Steps, product: Node, weights: Weights) -> Node | None:
    """Return what the product with a state of zeros is, (batch, gates)."""
    bias = steps.held(weights.second)
    if bias is None or not bool(bias.any()):
        return None
    batch = product.meta["val"].shape[0]
    return steps.constant(bias.expand(batch, -1).contiguous(), product, "start")


def _lstm(steps: Steps, product: Node, state: State, weights: Weights) -> tuple[Node, ...]:
    before, cell = state
    gates = _sum(steps, product, before, weights)
    size = gates.meta["val"].shape[1] // 4
    parts = [steps.part(gates, i * size, size) for i in range(4)]
    bends = (aten.sigmoid, aten.sigmoid, aten.tanh, aten.sigmoid)
    taken, kept, new, shown = (
        steps.call(bend.default, part) for bend, part in zip(bends, parts, strict=True)
    )
    made = steps.call(aten.mul.Tensor, taken, new)
    if cell is not None:
        made = steps.call(aten.add.Tensor, steps.call(aten.mul.Tensor, kept, cell), made)
    return steps.call(aten.mul.Tensor, shown, steps.call(aten.tanh.default, made)), made


def _gru(steps: Steps, product: Node, state: State, weights: Weights) -> tuple[Node, ...]:
    (before,) = state
    size = product.meta["val"].shape[1] // 3
    gates, new = steps.part(product, 0, 2 * size), steps.part(product, 2 * size, size)
    if before is None:
        more = _first_bias(steps, product, weights)
    else:
        more = steps.call(aten.linear.default, before, weights.of_state, weights.second)
    if more is not None:
        gates = steps.call(aten.add.Tensor, gates, steps.part(more, 0, 2 * size))
    gates = steps.call(aten.sigmoid.default, gates)
    if more is not None:
        kept = steps.call(
            aten.mul.Tensor, steps.part(gates, 0, size), steps.part(more, 2 * size, size)
        )
        new = steps.call(aten.add.Tensor, new, kept)
    new = steps.call(aten.tanh.default, new)
    share = steps.part(gates, size, size)
    if before is None:
        return (steps.call(aten.sub.Tensor, new, steps.call(aten.mul.Tensor, share, new)),)
    way = steps.call(aten.mul.Tensor, share, steps.call(aten.sub.Tensor, before, new))
    return (steps.call(aten.add.Tensor, new, way),)


def _plain(bend: Any) -> Cell:
    def cell(steps: Steps, product: Node, state: State, weights: Weights) -> tuple[Node, ...]:
        return (steps.call(bend, _sum(steps, product, state[0], weights)),)

    return cell


def _one(cell: Cell) -> Callable[[Steps], Node | list[Node] | None]:
    """Return the rewrite of an operator for one step."""

    def rewrite(steps: Steps) -> Node | list[Node] | None:
        x, states, *rest = steps.arguments()
        weights = Weights(*rest)
        given = [states] if isinstance(states, Node) else states
        product = steps.call(aten.linear.default, x, weights.of_input, weights.first)
        made = cell(steps, product, tuple(steps.state(s) for s in given), weights)
        return made[0] if isinstance(states, Node) else list(made)

    return rewrite


def _layers(cell: Cell) -> Callable[[Steps], list[Node] | None]:
    """Return the rewrite of an operator for layers and directions of steps."""

    def rewrite(steps: Steps) -> list[Node] | None:
        x, states, parameters, biased, layers, _, train, both, batch_first = steps.arguments()
        directions, along = 2 if both else 1, 1 if batch_first else 0
        each = 4 if biased else 2
        length = x.meta["val"].shape[along]
        if train or len(parameters) != layers * directions * each:
            return None
        if not isinstance(length, int) or length > MOST_STEPS:
            return None
        given: Sequence[Node] = [states] if isinstance(states, Node) else states
        last: list[tuple[Node, ...]] = []
        for layer in range(layers):
            rows = []
            for direction in range(directions):
                index = layer * directions + direction
                weights = Weights(*parameters[index * each : (index + 1) * each])
                state: State = tuple(steps.state(s, index) for s in given)
                made = _walk(steps, cell, x, state, weights, along, direction == 1)
                rows.append(steps.call(aten.stack.default, [s[0] for s in made], along))
                last.append(made[0 if direction == 1 else -1])
            x = rows[0] if len(rows) == 1 else steps.call(aten.cat.default, rows, 2)
        ends = [steps.call(aten.stack.default, list(kind), 0) for kind in zip(*last, strict=True)]
        return [x, *ends]

    return rewrite


def _walk(
    steps: Steps, cell: Cell, x: Node, state: State, weights: Weights, along: int, back: bool
) -> list[tuple[Node, ...]]:
    """Return the states of all steps, by time."""
    products = steps.call(aten.linear.default, x, weights.of_input, weights.first)
    order = range(x.meta["val"].shape[along])
    made: dict[int, tuple[Node, ...]] = {}
    for i in reversed(order) if back else order:
        product = steps.call(aten.select.int, products, along, i)
        made[i] = cell(steps, product, state, weights)
        state = made[i]
    return [made[i] for i in order]


TANH, RELU = _plain(aten.tanh.default), _plain(aten.relu.default)
FORMS: dict[Any, Callable[[Steps], Node | list[Node] | None]] = {
    aten.lstm.input: _layers(_lstm),
    aten.gru.input: _layers(_gru),
    aten.rnn_tanh.input: _layers(TANH),
    aten.rnn_relu.input: _layers(RELU),
    aten.lstm_cell.default: _one(_lstm),
    aten.gru_cell.default: _one(_gru),
    aten.rnn_tanh_cell.default: _one(TANH),
    aten.rnn_relu_cell.default: _one(RELU),
}
