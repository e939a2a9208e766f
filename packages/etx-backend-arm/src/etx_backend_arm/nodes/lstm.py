# SPDX-License-Identifier: BSD-3-Clause
"""LSTM layers, as one operator: gates of all steps in one product, then a step at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import torch
from torch import Tensor
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.moves import cut, whole
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    float32,
    lowers,
    picked_only,
    quantized,
    static_shape,
)
from etx_backend_arm.nodes.wide import ENTRIES, LARGEST, Integers, table8, table16
from etx_backend_arm.quantized import Affine, Look, Weight, affine, split_of, weight_of
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
LSTM = aten.lstm.input
STATE = Affine(2.0**-7, 0, -128, 127)
"""What the integers of a state mean that goes into the next step."""
GATES = 4
ORDER = [0, 1, 3, 2]
"""Of torch's gates, so that the output's is third."""
BITS = 22
"""Gates in int16 tables, and cells, are multiples of 2**-BITS."""
GATE_BITS = 16
GATE_REACH, CELL_REACH = 8.0, 4.0
"""Sigmoid and tanh are constant beyond: on tables of 256 entries, a step is 1/128 of it."""
WIDE_REACH = 16.0


def of_lstm(node: Node, look: Look) -> str | None:
    """It picks a result of a layer in evaluation that begins with zeros."""
    source = split_of(node)
    if source is None or source.target is not LSTM:
        return f"{node.name} picks a result of {node.args[0]}, which has no lowering"
    return starts_with_zeros(source, look)


def starts_with_zeros(node: Node, look: Look) -> str | None:
    """The first state is zero, weights are one pair a layer and direction."""
    _, states, parameters, has_biases, layers, _, train, both = arguments(node)[:8]
    if train:
        return f"{node.name} is in training"
    if len(parameters) != layers * (2 if both else 1) * (4 if has_biases else 2):
        return f"{node.name} has projections"
    for state in states:
        if not is_zero(state, look):
            return f"{state.name}, the first state of {node.name}, is not a constant zero"
    return None


def is_zero(node: Node, look: Look) -> bool:
    """Tell whether a tensor is made of zeros."""
    if node.target in (aten.zeros.default, aten.zeros_like.default):
        return True
    if node.target in (aten.full.default, aten.full_like.default):
        return bool(node.args[1] == 0)
    held = look(node)
    return held is not None and not bool(held.any())


def int8_matrices(node: Node, look: Look) -> str | None:
    """Matrices are int8 with a scale a row, biases constants."""
    source = split_of(node)
    assert source is not None
    for each in arguments(source)[2]:
        matrix = each.meta["val"].dim() == 2
        found = weight_of(each, look) if matrix else None
        if matrix and (found is None or found.axis not in (None, 0)):
            return f"{each.name}, a matrix of {source.name}, is not int8 with a scale a row"
        if not matrix and look(each) is None:
            return f"{each.name}, a bias of {source.name}, is not a constant"
    return None


def constant_matrices(node: Node, look: Look) -> str | None:
    """Matrices and biases are constants."""
    for each in arguments(split_of(node) or node)[2]:
        if look(each) is None:
            return f"{each.name}, a weight of {node.name}, is not a constant"
    return None


@dataclass(frozen=True)
class Cell:
    """One layer in one direction: nodes of its matrices, and its bias."""

    of_input: Node
    of_state: Node
    bias: Tensor | None


class Arithmetic(Protocol):
    """How the values of gates and states are computed.

    Rows of gates lie along dimension 1; states and cells have the shape (1, batch, 1, size).
    """

    def gates(self, cell: Cell, rows: str, name: str) -> str:
        """Return the part of the gates that the inputs of all steps make."""

    def more(self, cell: Cell, state: str, gates: str, name: str) -> str:
        """Return gates to which the state's part is added."""

    def step(self, gates: str, size: int, before: str | None, name: str) -> tuple[str, str]:
        """Return the next state and cell."""


def _matrix_product(
    call: Call, rows: str, operands: Sequence[str], outputs: int, name: str, made: DType
) -> str:
    attribute = fbs.Conv2dAttribute(pad=[0] * 4, stride=[1, 1], dilation=[1, 1], acc_type=made)
    shape = [1, call.graph.shape(rows)[1], 1, outputs]
    return call.graph.operator(
        Op.CONV2D, attribute, [rows, *operands], call.fresh(name), shape, made
    )


def _part(call: Call, value: str, index: int, size: int, name: str) -> str:
    shape = call.graph.shape(value)
    return cut(call, value, [0, 0, 0, index * size], [*shape[:3], size], f"{name}_{index}")


class Reals:
    """Arithmetic of float32: gates are (1, rows, 4, size), those of the output third.

    TRANSPOSE_CONV2D makes the four of a row side by side, so that a cell is a REDUCE_SUM over them.
    """

    def __init__(self, call: Call) -> None:
        self.call = call

    def _product(self, matrix: Node, rows: str, name: str) -> str:
        call, graph = self.call, self.call.graph
        held = call.values.parameter(matrix)
        assert held is not None
        size, inputs = held.shape[0] // GATES, held.shape[1]
        filters = held.detach().reshape(GATES, size, 1, inputs)[ORDER,].permute(1, 2, 0, 3)
        zero = call.values.constant("no_zero_point", torch.zeros(1))
        operands = [
            rows,
            call.values.constant(f"{call.node.name}_{matrix.name}", filters),
            call.values.constant(f"no_bias_{size}", torch.zeros(size)),
            zero,
            zero,
        ]
        attribute = fbs.TransposeConv2dAttribute(
            out_pad=[0] * 4, stride=[1, 1], acc_type=DType.FP32
        )
        shape = [1, graph.shape(rows)[1], GATES, size]
        op = Op.TRANSPOSE_CONV2D
        return graph.operator(op, attribute, operands, call.fresh(name), shape, DType.FP32)

    def gates(self, cell: Cell, rows: str, name: str) -> str:
        """Return the part of the gates that the inputs of all steps make."""
        made = self._product(cell.of_input, rows, f"{name}_unbiased")
        if cell.bias is None:
            return made
        bias = cell.bias.reshape(1, 1, GATES, -1)[:, :, ORDER]
        held = self.call.values.constant(self.call.fresh(f"{name}_bias"), bias)
        return self._two(Op.ADD, fbs.AddAttribute(), made, held, name)

    def more(self, cell: Cell, state: str, gates: str, name: str) -> str:
        """Return gates to which the state's part is added."""
        made = self._product(cell.of_state, state, f"{name}_of_state")
        return self._two(Op.ADD, fbs.AddAttribute(), gates, made, f"{name}_sum")

    def _two(self, op: Op, attribute: object, first: str, second: str, name: str) -> str:
        operands = [first, second]
        if op is Op.MUL:
            operands.append(self.call.graph.constant("no_shift", [1], DType.INT8, b"\0"))
        return self.call.emit(op, attribute, operands, name, self.call.graph.shape(first))

    def _mul(self, first: str, second: str, name: str) -> str:
        return self._two(Op.MUL, fbs.MulAttribute(), first, second, name)

    def _tanh(self, value: str, name: str) -> str:
        shape = self.call.graph.shape(value)
        return self.call.emit(Op.TANH, fbs.TanhAttribute(), [value], name, shape)

    def _gate(self, gates: str, index: int, name: str) -> str:
        shape = self.call.graph.shape(gates)
        size = [*shape[:2], 1, shape[3]]
        return cut(self.call, gates, [0, 0, index, 0], size, f"{name}_gate_{index}")

    def step(self, gates: str, size: int, before: str | None, name: str) -> tuple[str, str]:
        """Return the next state and cell: of sigmoids and (tanh, cell, 0, 0) the products' sum."""
        call, graph = self.call, self.call.graph
        shape, attribute = graph.shape(gates), fbs.SigmoidAttribute()
        bent = call.emit(Op.SIGMOID, attribute, [gates], f"{name}_sigmoid", shape)
        new = self._tanh(self._gate(gates, 3, f"{name}_new"), f"{name}_tanh")
        if before is None:
            cell = self._mul(self._gate(bent, 0, name), new, f"{name}_cell")
        else:
            none = call.values.constant(f"none_{size}", torch.zeros(1, shape[1], 2, size))
            parts = _joined(call, [new, before, none], 2, f"{name}_parts")
            products = self._mul(bent, parts, f"{name}_products")
            summed = fbs.ReduceSumAttribute(axis=2)
            made = [*shape[:2], 1, size]
            cell = call.emit(Op.REDUCE_SUM, summed, [products], f"{name}_cell", made)
        output = self._gate(bent, 2, name)
        return self._mul(output, self._tanh(cell, f"{name}_cell_tanh"), f"{name}_state"), cell


class Fixed:
    """Gates and cells in int32, functions by tables, states in int8.

    The quantized program keeps states and gates in floats. A state here is a multiple of 1/128; so
    results may be a step off, and on tables of 256 entries gates are multiples of GATE_REACH / 128.
    """

    def __init__(self, call: Call, form: Affine) -> None:
        self.call, self.form = call, form
        self.math = Integers(call)
        self.narrow = call.values.narrow_tables

    def _product(
        self, weight: Weight, bias: Tensor | None, form: Affine, rows: str, name: str, node: Node
    ) -> str:
        call, graph = self.call, self.call.graph
        outputs, inputs = weight.integers.shape
        operands = [
            call.values.constant(
                f"{call.node.name}_{node.name}", weight.integers.reshape(outputs, 1, 1, inputs)
            ),
            call.values.bias(call.fresh(f"{name}_bias"), bias, form, weight),
            graph.zero_point(form.zero_point, DType.INT8),
            graph.zero_point(0, DType.INT8),
        ]
        made = _matrix_product(call, rows, operands, outputs, f"{name}_total", DType.INT32)
        scales = (form.scale * weight.scales * 2**GATE_BITS).tolist()
        return graph.rescale(made, scales, (0, 0), call.fresh(name), DType.INT32)

    def gates(self, cell: Cell, rows: str, name: str) -> str:
        """Return the part of the gates that the inputs of all steps make."""
        weight = self.call.values.weight(cell.of_input)
        return self._product(weight, cell.bias, self.form, rows, name, cell.of_input)

    def more(self, cell: Cell, state: str, gates: str, name: str) -> str:
        """Return gates to which the state's part is added."""
        weight = self.call.values.weight(cell.of_state)
        made = self._product(weight, None, STATE, state, f"{name}_of_state", cell.of_state)
        return self.math.add(gates, made, f"{name}_sum")

    def _index(self, reach: float, value: str, bits: int, name: str) -> str:
        """Return where in a table int32 multiples of 2**-bits are."""
        call = self.call
        levels, dtype = (128, DType.INT8) if self.narrow else (2**15, DType.INT16)
        ratio = levels / (reach if self.narrow else WIDE_REACH) * 2.0**-bits
        name = call.fresh(f"{name}_at")
        return (
            name if name in call.graph else call.graph.rescale(value, [ratio], (0, 0), name, dtype)
        )

    def _bend(
        self, function: Callable[[Tensor], Tensor], reach: float, index: str, name: str
    ) -> str:
        """Return a function by its table, as int32 multiples of 2**-BITS."""
        call = self.call
        if self.narrow:
            at = torch.arange(-128, 128, dtype=torch.float64) * reach / 128
            return table8(call, index, function(at), BITS, name)
        at = (torch.arange(ENTRIES, dtype=torch.float64) - 256) * WIDE_REACH / 256
        return table16(call, index, (function(at) * 2**15).clamp(max=LARGEST), name)

    def step(self, gates: str, size: int, before: str | None, name: str) -> tuple[str, str]:
        """Return the next state and cell."""
        bent = self._bent(gates, size, name)
        cell = self._cell(bent, before, f"{name}_cell")
        return self._state(bent[2], cell, f"{name}_state"), cell

    def _bent(self, gates: str, size: int, name: str) -> list[str]:
        """Return sigmoid of three gates, and tanh of the other."""
        call = self.call
        index = self._index(GATE_REACH, gates, GATE_BITS, f"{name}_sigmoid")
        bent = self._bend(torch.sigmoid, GATE_REACH, index, f"{name}_sigmoid")
        parts = [_part(call, bent, i, size, f"{name}_gate") for i in (0, 1, 3)]
        index = self._index(CELL_REACH, gates, GATE_BITS, f"{name}_tanh")
        index = _part(call, index, 2, size, f"{name}_new")
        return [*parts, self._bend(torch.tanh, CELL_REACH, index, f"{name}_tanh")]

    def _cell(self, bent: Sequence[str], before: str | None, name: str) -> str:
        """Return the next cell."""
        entering, kept, _, new = bent
        made = self.math.mul(entering, new, BITS, f"{name}_entering")
        if before is None:
            return made
        return self.math.add(self.math.mul(kept, before, BITS, f"{name}_kept"), made, name)

    def _state(self, gate: str, cell: str, name: str) -> str:
        """Return the next state."""
        index = self._index(CELL_REACH, cell, BITS, f"{name}_tanh")
        bent = self._bend(torch.tanh, CELL_REACH, index, f"{name}_tanh")
        made = self.math.mul(gate, bent, BITS, f"{name}_wide")
        return self.call.graph.rescale(made, [2.0 ** (7 - BITS)], (0, 0), self.call.fresh(name))


@dataclass(frozen=True)
class Results:
    """The values of an LSTM's results, as (1, batch, 1, size) each."""

    rows: str
    states: list[str]
    cells: list[str]


def _run(call: Call, cell: Cell, how: Arithmetic, rows: str, batch: int, name: str) -> Results:
    """Run a layer in the direction of its rows, those of a step together."""
    graph = call.graph
    gates = how.gates(cell, rows, f"{name}_gates")
    wide = graph.shape(gates)[2:]
    size, count = prod(wide) // GATES, graph.shape(rows)[1] // batch
    state: str | None = None
    before: str | None = None
    states = {}
    order = range(count) if "back" not in name else reversed(range(count))
    for i in order:
        at = f"{name}_{i}"
        part = cut(call, gates, [0, i * batch, 0, 0], [1, batch, *wide], f"{at}_part")
        if state is not None:
            part = how.more(cell, state, part, at)
        state, before = how.step(part, size, before, at)
        states[i] = state
    assert state is not None
    assert before is not None
    joined = _joined(call, [states[i] for i in range(count)], 1, f"{name}_states")
    return Results(joined, [state], [before])


def _joined(call: Call, parts: Sequence[str], axis: int, name: str) -> str:
    if len(parts) == 1:
        return parts[0]
    shape = call.graph.shape(parts[0])
    shape[axis] = sum(call.graph.shape(part)[axis] for part in parts)
    return call.emit(Op.CONCAT, fbs.ConcatAttribute(axis=axis), parts, name, shape)


def _cells(values: Values, node: Node) -> list[list[Cell]]:
    """Return the cells of each layer, by direction."""
    _, _, parameters, has_biases, layers, _, _, both = arguments(node)[:8]
    each = 4 if has_biases else 2
    found = []
    for at in range(0, len(parameters), each):
        held = [values.parameter(p) for p in parameters[at + 2 : at + each]]
        biases = [bias.detach() for bias in held if bias is not None]
        bias = torch.stack(biases).sum(0) if biases else None
        found.append(Cell(parameters[at], parameters[at + 1], bias))
    directions = 2 if both else 1
    return [found[i * directions : (i + 1) * directions] for i in range(layers)]


def _results(call: Call, node: Node) -> Results:
    """Emit the layers of an LSTM."""
    graph, batch_first = call.graph, arguments(node)[8]
    source = node.args[0]
    assert isinstance(source, Node)
    value = call.get(source)
    first, second, inputs = graph.shape(value)
    batch, steps = (first, second) if batch_first else (second, first)
    if batch_first:
        shape, dtype = [steps, batch, inputs], graph.dtype(value)
        value = graph.transpose(value, [1, 0, 2], call.fresh("by_step"), shape, dtype)
    rows = graph.reshape(value, [1, steps * batch, 1, inputs], call.fresh("rows"))
    states, cells = [], []
    form = affine(source)
    for i, layer in enumerate(_cells(call.values, node)):
        made = []
        for cell, way in zip(layer, ("", "back"), strict=False):
            how: Arithmetic = Reals(call) if form is None else Fixed(call, form if not i else STATE)
            made.append(_run(call, cell, how, rows, batch, f"layer{i}{way}"))
            states += made[-1].states
            cells += made[-1].cells
        rows = _joined(call, [each.rows for each in made], 3, f"layer{i}_both")
    return Results(rows, states, cells)


def lstm(values: Values, node: Node) -> None:
    """Lower what picks a result; the first that does emits the layers."""
    source = split_of(node)
    assert source is not None
    call = Call(values, node, "nchw")
    found = values.results.get(source)
    if found is None:
        found = values.results[source] = _results(call, source)
    assert isinstance(found, Results)
    index, scale = node.args[1], None if call.step is None else STATE.scale
    if index == 0:
        *_, width = values.shape(node)
        steps, batch = source.meta["val"][0].shape[:2]
        if arguments(source)[8]:
            steps, batch = batch, steps
            made = call.reshape(found.rows, [steps, batch, width], "by_step_made")
            dtype = call.graph.dtype(made)
            made = call.graph.transpose(made, [1, 0, 2], call.fresh("as"), call.shape, dtype)
        else:
            made = call.reshape(found.rows, call.shape, "as")
        call.done(made, scale)
        return
    parts = found.states if index == 1 else found.cells
    made = call.reshape(_joined(call, parts, 0, "last"), call.shape, "as")
    call.done(made, scale if index == 1 or scale is None else 2.0**-BITS)


def first_state(node: Node, look: Look) -> str | None:
    """Only LSTMs read it."""
    if all(user.target is LSTM for user in node.users):
        return None
    return f"{node.name} is read by other operators than an LSTM"


def nothing(values: Values, node: Node) -> None:
    """Lower to nothing: an LSTM knows that its first state is zero."""


FLOAT = (float32, static_shape)
for target in (aten.full.default, aten.zeros.default):
    lowers(target, when=(*FLOAT, first_state))(nothing)
lowers(LSTM, when=(*FLOAT, picked_only, starts_with_zeros, constant_matrices))(whole)
lowers(operator.getitem, when=(*FLOAT, of_lstm, constant_matrices))(lstm)
INTEGER = (quantized, static_shape, of_lstm, int8_matrices)
lowers(operator.getitem, when=INTEGER, profile=Profile.INT)(lstm)
