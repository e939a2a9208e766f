# SPDX-License-Identifier: BSD-3-Clause
"""Whole operators as smaller ones, before they are quantized: an NPU has no others.

``scaled_dot_product_attention(q, k, v)`` -> ``matmul(softmax(matmul(q, k') * s), v)``,
``pool1d(x)`` -> ``squeeze(pool2d(unsqueeze(x)))``, ``gru(x)`` -> its gates, a step at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

__all__ = ["rewrite_whole"]

aten = torch.ops.aten


def rewrite_whole(model: GraphModule, is_taken: Callable[[Node], bool]) -> None:
    """Rewrite the operators for which ``is_taken``."""
    for target, rewrite in REWRITES.items():
        for node in model.graph.find_nodes(op="call_function", target=target):
            if is_taken(node):
                with model.graph.inserting_before(node):
                    rewrite(_Writer(node))
    model.graph.eliminate_dead_code()
    model.recompile()


class _Writer:
    """Adds operators in the place of a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        schema: Any = node.target
        names = schema._schema.arguments
        given = dict(zip((a.name for a in names), node.args, strict=False)) | dict(node.kwargs)
        self.given: dict[str, Any] = {a.name: given.get(a.name, a.default_value) for a in names}

    def call(self, target: Any, *args: Any) -> Node:
        """Add an operator."""
        made: Node = self.node.graph.call_function(target, args)
        made.meta = {**self.node.meta, "val": target(*map_arg(args, lambda n: n.meta["val"]))}
        made.meta.pop("tensor_meta", None)
        return made

    def done(self, made: Node) -> None:
        """Let a value take the place of the node."""
        self.node.replace_all_uses_with(made)
        self.node.graph.erase_node(self.node)


def _attention(w: _Writer) -> None:
    given = w.given
    if given["attn_mask"] is not None or given["is_causal"] or given["dropout_p"]:
        return
    if given.get("enable_gqa"):
        return
    query, key, value = given["query"], given["key"], given["value"]
    scale = given["scale"] or query.meta["val"].shape[-1] ** -0.5
    scores = w.call(aten.matmul.default, query, w.call(aten.transpose.int, key, -2, -1))
    scores = w.call(aten.mul.Tensor, scores, float(scale))
    w.done(w.call(aten.matmul.default, w.call(aten.softmax.int, scores, -1), value))


def _average(w: _Writer) -> None:
    given = w.given
    sizes = [[1, *given[name]] if given[name] else [] for name in ("kernel_size", "stride")]
    image = w.call(aten.unsqueeze.default, given["self"], -2)
    rest = ([0, *given["padding"]], given["ceil_mode"], given["count_include_pad"])
    w.done(w.call(aten.squeeze.dim, w.call(aten.avg_pool2d.default, image, *sizes, *rest), -2))


def _largest(w: _Writer) -> None:
    given = w.given
    sizes = [[1, *given[name]] if given[name] else [] for name in ("kernel_size", "stride")]
    image = w.call(aten.unsqueeze.default, given["self"], -2)
    rest = ([0, *given["padding"]], [1, *given["dilation"]], given["ceil_mode"])
    w.done(w.call(aten.squeeze.dim, w.call(aten.max_pool2d.default, image, *sizes, *rest), -2))


def _adaptive(w: _Writer) -> None:
    given = w.given["self"].meta["val"].shape[-2:]
    made = w.node.meta["val"].shape[-2:]
    if w.node.meta["val"].dim() != 4 or any(n % m for n, m in zip(given, made, strict=True)):
        return
    if list(made) == [1, 1]:
        w.done(w.call(aten.mean.dim, w.given["self"], [-1, -2], True))
        return
    size = [int(n // m) for n, m in zip(given, made, strict=True)]
    w.done(w.call(aten.avg_pool2d.default, w.given["self"], size, size))


def _gru(w: _Writer) -> None:
    given = w.given
    x, state, parameters = given["input"], given["hx"], given["params"]
    each = 4 if given["has_biases"] else 2
    directions = 2 if given["bidirectional"] else 1
    time = 1 if given["batch_first"] else 0
    if given["train"] or len(parameters) != given["num_layers"] * directions * each:
        return
    last = []
    for layer in range(given["num_layers"]):
        made = []
        for way in range(directions):
            index = layer * directions + way
            held = parameters[index * each : (index + 1) * each]
            first = w.call(aten.select.int, state, 0, index)
            rows = _direction(w, x, first, held, time, bool(way))
            made.append(w.call(aten.stack.default, rows, time))
            last.append(rows[0] if way else rows[-1])
        x = made[0] if directions == 1 else w.call(aten.cat.default, made, -1)
    results = [x, w.call(aten.stack.default, last, 0)]
    for user in list(w.node.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(results[int(user.args[1])])  # type: ignore[arg-type]
        w.node.graph.erase_node(user)
    w.node.graph.erase_node(w.node)


def _direction(
    w: _Writer, x: Node, state: Node, held: list[Node], time: int, is_back: bool
) -> list[Node]:
    """Return the states of one layer in one direction, in the order of time."""
    biases: Sequence[Node | None] = held[2:] or [None, None]
    of_input = w.call(aten.linear.default, x, held[0], biases[0])
    count = x.meta["val"].shape[time]
    rows: dict[int, Node] = {}
    for t in reversed(range(count)) if is_back else range(count):
        here = w.call(aten.select.int, of_input, time, t)
        there = w.call(aten.linear.default, state, held[1], biases[1])
        parts = [_thirds(w, here), _thirds(w, there)]
        reset, update = (
            w.call(aten.sigmoid.default, w.call(aten.add.Tensor, parts[0][i], parts[1][i]))
            for i in (0, 1)
        )
        kept = w.call(aten.mul.Tensor, reset, parts[1][2])
        new = w.call(aten.tanh.default, w.call(aten.add.Tensor, parts[0][2], kept))
        apart = w.call(aten.sub.Tensor, state, new)
        state = w.call(aten.add.Tensor, new, w.call(aten.mul.Tensor, update, apart))
        rows[t] = state
    return [rows[t] for t in range(count)]


def _thirds(w: _Writer, value: Node) -> list[Node]:
    size = value.meta["val"].shape[-1] // 3
    return [w.call(aten.slice.Tensor, value, -1, i * size, (i + 1) * size) for i in range(3)]


REWRITES: dict[Any, Callable[[_Writer], None]] = {
    aten.adaptive_avg_pool2d.default: _adaptive,
    aten.avg_pool1d.default: _average,
    aten.gru.input: _gru,
    aten.max_pool1d.default: _largest,
    aten.scaled_dot_product_attention.default: _attention,
}
