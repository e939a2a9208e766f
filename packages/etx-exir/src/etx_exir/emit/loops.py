# SPDX-License-Identifier: BSD-3-Clause
"""Loops: backward jumps over a body; carries are copied, never moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from etx_schema import Bool, Int, Tensor, TensorShapeDynamism
from torch.fx import GraphModule, Node

from etx_exir.emit.jumps import Emit, assign, carry, here, inline, jump, operand
from etx_exir.emit.method import MethodEmitter, Reference
from etx_exir.emit.symbolic import primitive, size_of, size_value
from etx_exir.plan.linear_ir import Label, Step


def while_loop(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    """``while test(*carries): carries = body(*carries)``."""
    condition, body, initial, extra = (*node.args, ())[:4]
    test, step = (emitter.environment[g] for g in (condition, body))  # type: ignore[index]
    captured = [operand(emitter, o) for o in extra]  # type: ignore[union-attr]
    starts = [operand(emitter, o) for o in initial]  # type: ignore[union-attr]
    carries = [carry(emitter, start) for start in starts]
    assign(emitter, starts, carries)
    again, end = Label(), Label()
    here(emitter, again)
    (proceed,) = inline(emitter, test, [*carries, *captured], nodes)
    jump(emitter, proceed, end)
    results = inline(emitter, step, [*carries, *captured], nodes)
    assign(emitter, results, carries)
    jump(emitter, None, again)
    here(emitter, end)
    return carries


def map_loop(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    """``ys[i] = body(xs[i], *extra)``."""
    body, xs, extra = (*node.args, ())[:3]
    captured = [operand(emitter, o) for o in extra]  # type: ignore[union-attr]
    loop = _RowLoop(emitter, [operand(emitter, x) for x in xs])  # type: ignore[union-attr]
    stacked = loop.results(node.meta["val"])
    graph = emitter.environment[body]  # type: ignore[index]
    rows = loop.begin(_inputs(graph))
    loop.end(stacked, inline(emitter, graph, [*rows, *captured], nodes))
    return stacked


def scan(emitter: MethodEmitter, node: Node, nodes: Emit) -> Reference:
    """``carries, ys[i] = body(*carries, xs[i], *extra)``."""
    body, initial, xs, extra = (*node.args, ())[:4]
    starts = [operand(emitter, o) for o in initial]  # type: ignore[union-attr]
    captured = [operand(emitter, o) for o in extra]  # type: ignore[union-attr]
    carries = [carry(emitter, start) for start in starts]
    assign(emitter, starts, carries)
    loop = _RowLoop(emitter, [operand(emitter, x) for x in xs])  # type: ignore[union-attr]
    stacked = loop.results(node.meta["val"][len(carries) :])
    graph = emitter.environment[body]  # type: ignore[index]
    rows = loop.begin(_inputs(graph)[len(carries) :])
    results = inline(emitter, graph, [*carries, *rows, *captured], nodes)
    loop.store(stacked, results[len(carries) :])
    assign(emitter, results[: len(carries)], carries)
    loop.end()
    return [*carries, *stacked]


def _inputs(graph: GraphModule) -> list[torch.Tensor]:
    return [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]


class _RowLoop:
    """A loop over the rows of tensors, whose results grow row by row."""

    def __init__(self, emitter: MethodEmitter, xs: Sequence[int]) -> None:
        self.emitter = emitter
        self.xs = list(xs)
        self.count = size_of(emitter, self.xs[0], 0)
        self.zero, self.one = emitter.values.integer(0), emitter.values.integer(1)
        self.index = emitter.values.add(Int(int_val=0))
        self.again, self.done = Label(), Label()
        self.reset = self._reset()

    def _reset(self) -> Step:
        primitive(self.emitter, "add", [self.zero, self.zero, self.index])
        return self.emitter.listing.steps[-1]

    def results(self, fakes: Sequence[torch.Tensor]) -> list[int]:
        """Add the tensors that collect rows; what they had before counts as gone."""
        found = []
        for fake in fakes:
            index = self.emitter.fresh(fake)
            tensor: Any = self.emitter.values.items[index].val
            assert isinstance(tensor, Tensor)
            tensor.shape_dynamism = TensorShapeDynamism.DYNAMIC_BOUND
            found.append(index)
            if self.may_be_empty():
                self._empty(index, fake)
        self.reset.writes += tuple(found)
        return found

    def may_be_empty(self) -> bool:
        """Tell whether there can be no row at all."""
        return self.emitter.bounds.lower(self.emitter.fakes[self.xs[0]].shape[0]) == 0

    def _empty(self, result: int, fake: torch.Tensor) -> None:
        """Append the step that leaves `result` without rows, for when the loop makes no turn."""
        rest = [size_value(self.emitter, size) for size in fake.shape[1:]]
        values = self.emitter.values
        number = values.boolean(False) if fake.dtype is torch.bool else self.zero
        args = [values.int_list([self.zero, *rest]), number, result, result]
        self.emitter.call("aten::full", "out", args, rest, [result])

    def begin(self, fakes: Sequence[torch.Tensor]) -> list[int]:
        """Append the head of the loop and return the rows of this turn."""
        emitter = self.emitter
        here(emitter, self.again)
        proceed = emitter.values.add(_false())
        primitive(emitter, "lt", [self.index, self.count, proceed])
        jump(emitter, proceed, self.done)
        rows = []
        for x, fake in zip(self.xs, fakes, strict=False):
            row = emitter.fresh(fake)
            args = [x, self.zero, self.index, row, row]
            emitter.call("aten::select_copy", "int_out", args, [x, self.index], [row])
            rows.append(row)
        return rows

    def store(self, stacked: Sequence[int], rows: Sequence[int]) -> None:
        """Append the rows of this turn to the results."""
        for target, row in zip(stacked, rows, strict=True):
            args = [target, row, self.index]
            reads = [target, row, self.index]
            self.emitter.call("executorch_prim::et_copy_index", "tensor", args, reads, (), [target])

    def end(self, stacked: Sequence[int] = (), rows: Sequence[int] = ()) -> None:
        """Store `rows` and append the end of the loop."""
        self.store(stacked, rows)
        primitive(self.emitter, "add", [self.index, self.one, self.index])
        jump(self.emitter, None, self.again)
        here(self.emitter, self.done)


def _false() -> Bool:
    return Bool(bool_val=False)


LOOPS = {"while_loop": while_loop, "map_impl": map_loop, "scan": scan}
