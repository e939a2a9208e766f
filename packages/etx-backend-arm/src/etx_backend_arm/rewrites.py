# SPDX-License-Identifier: BSD-3-Clause
"""Whole operators as smaller ones, before they are quantized: an NPU has no others.

``pool1d(x)`` -> ``squeeze(pool2d(unsqueeze(x)))``,
``gru(x)`` -> its gates, a step at a time,
``addmm(b, x, y)`` -> ``mm(x, y) + b``, ``baddbmm`` alike, ``glu(x)`` -> ``x[:n] * sigmoid(x[n:])``,
``x / y`` -> ``x * reciprocal(y)``, ``max(x, d).values`` -> ``amax(x, d)``, ``scatter(x, y)`` ->
``cat(x[:i], y, x[j:])``, ``var(x)`` -> ``mean((x - mean(x))^2)``, ``clamp(x, a, b)`` ->
``minimum(maximum(x, a), b)``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from etx_exir.passes.base import name_outputs
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_backend_arm.framed import FRAMES, framed, unshuffled, windows
from etx_backend_arm.quantized import FILLED
from etx_backend_arm.writer import LoweredWriter, Writer, part

__all__ = ["onto", "rewrite", "rewrite_whole", "take_apart"]

aten = torch.ops.aten
MOST_WINDOWS = 100
"""Adaptive pools of more windows of unequal sizes stay as they are."""


def rewrite_whole(model: GraphModule, is_taken: Callable[[Node], bool]) -> None:
    """Rewrite the operators for which ``is_taken``."""
    rewrite(model, is_taken, REWRITES)


def rewrite(
    model: GraphModule,
    is_taken: Callable[[Node], bool],
    rows: Mapping[Any, Callable[[Any], None]],
    kind: type[Writer] = Writer,
) -> None:
    """Rewrite the operators of ``rows`` for which ``is_taken``, each given a writer of ``kind``."""
    for target, row in rows.items():
        for node in model.graph.find_nodes(op="call_function", target=target):
            if is_taken(node):
                with model.graph.inserting_before(node):
                    row(kind(node))
    model.graph.eliminate_dead_code()
    model.recompile()


def take_apart(program: ExportedProgram, refusal: Callable[[Node], str | None]) -> None:
    """Rewrite operators of a lowered program that have a refusal, where their parts have none."""
    count = len(program.graph.nodes)
    for target, rewrite in LOWERED.items():
        for node in program.graph.find_nodes(op="call_function", target=target):
            if refusal(node) is not None:
                with program.graph.inserting_before(node):
                    rewrite(LoweredWriter(node, program, refusal))
    if len(program.graph.nodes) != count:
        name_outputs(program)


def _average(w: Writer) -> None:
    given = w.given
    sizes = [[1, *given[name]] if given[name] else [] for name in ("kernel_size", "stride")]
    image = w.call(aten.unsqueeze.default, given["self"], -2)
    rest = ([0, *given["padding"]], given["ceil_mode"], given["count_include_pad"])
    w.done(w.call(aten.squeeze.dim, w.call(aten.avg_pool2d.default, image, *sizes, *rest), -2))


def _largest(w: Writer) -> None:
    given = w.given
    sizes = [[1, *given[name]] if given[name] else [] for name in ("kernel_size", "stride")]
    image = w.call(aten.unsqueeze.default, given["self"], -2)
    rest = ([0, *given["padding"]], [1, *given["dilation"]], given["ceil_mode"])
    w.done(w.call(aten.squeeze.dim, w.call(aten.max_pool2d.default, image, *sizes, *rest), -2))


def _unbatched(w: Writer) -> None:
    if w.node.meta["val"].dim() == 3:
        image = w.call(aten.unsqueeze.default, w.given["self"], 0)
        rest = list(w.given.values())[1:]
        w.done(w.call(aten.squeeze.dim, w.call(w.node.target, image, *rest), 0))


def _without_indices(w: Writer) -> None:
    if w.node.users and all(user.args[1] == 0 for user in w.node.users):
        w.picked(w.call(aten.max_pool2d.default, *w.given.values()))


def _adaptive(w: Writer) -> None:
    x = w.given["self"]
    given, made = x.meta["val"].shape[-2:], w.node.meta["val"].shape[-2:]
    if w.node.meta["val"].dim() != 4:
        return
    if list(made) == [1, 1]:
        w.done(w.call(aten.mean.dim, x, [-1, -2], True))
        return
    if all(n % m == 0 for n, m in zip(given, made, strict=True)):
        size = [int(n // m) for n, m in zip(given, made, strict=True)]
        w.done(w.call(aten.avg_pool2d.default, x, size, size))
        return
    if made.numel() > MOST_WINDOWS:
        return
    rows = []
    for top, bottom in _windows(*map(int, (given[0], made[0]))):
        band = part(w, x, -2, top, bottom)
        columns = (part(w, band, -1, *each) for each in _windows(int(given[1]), int(made[1])))
        means = [w.call(aten.mean.dim, each, [-1, -2], True) for each in columns]
        rows.append(w.call(aten.cat.default, means, -1))
    w.done(w.call(aten.cat.default, rows, -2))


def _windows(given: int, made: int) -> list[tuple[int, int]]:
    """Return where the windows of an adaptive pool begin and end."""
    return [(i * given // made, -(-(i + 1) * given // made)) for i in range(made)]


def onto(product: Any) -> Callable[[Writer], None]:
    """``addmm(b, x, y)`` or ``baddbmm``."""

    def rewrite(w: Writer) -> None:
        offset, first, second, beta, alpha = w.given.values()
        scaled = [(offset, beta), (w.call(product, first, second), alpha)]
        parts = [x if by == 1 else w.call(aten.mul.Tensor, x, by) for x, by in scaled]
        w.done(w.call(aten.add.Tensor, *parts))

    return rewrite


def _glu(w: Writer) -> None:
    x, dim = w.given["self"], w.given["dim"]
    size = x.meta["val"].shape[dim]
    first, second = (part(w, x, dim, *ends) for ends in ((0, size // 2), (size // 2, size)))
    w.done(w.call(aten.mul.Tensor, first, w.call(aten.sigmoid.default, second)))


def _of_all(target: Any) -> Callable[[Writer], None]:
    def rewrite(w: Writer) -> None:
        x = w.given["self"]
        dims = list(range(x.meta["val"].dim()))
        if dims:
            w.done(w.call(target, x, dims, False))

    return rewrite


def _matmul(w: Writer) -> None:
    """Of vectors, and of batches of different shapes, as a product of batches of one shape."""
    first, second = list(w.given.values())
    shapes = [list(each.meta["val"].shape) for each in (first, second)]
    if min(map(len, shapes)) > 1 and shapes[0][:-2] == shapes[1][:-2]:
        return
    x = first if len(shapes[0]) > 1 else w.call(aten.unsqueeze.default, first, 0)
    y = second if len(shapes[1]) > 1 else w.call(aten.unsqueeze.default, second, -1)
    pair, ends = [x, y], [list(each.meta["val"].shape) for each in (x, y)]
    batch = list(torch.broadcast_shapes(ends[0][:-2], ends[1][:-2]))  # type: ignore[no-untyped-call]
    for i, (each, end) in enumerate(zip((x, y), ends, strict=True)):
        if end[:-2] != batch:
            pair[i] = w.call(aten.expand.default, each, [*batch, *end[-2:]])
    made = w.call(aten.matmul.default, *pair)
    if len(shapes[1]) == 1:
        made = w.call(aten.squeeze.dim, made, -1)
    if len(shapes[0]) == 1:
        made = w.call(aten.squeeze.dim, made, -1 if len(shapes[1]) == 1 else -2)
    w.done(made)


def _by_number(target: Any) -> Callable[[Writer], None]:
    def rewrite(w: Writer) -> None:
        x, other, *alpha = w.given.values()
        if alpha and alpha[0] != 1:
            other = other * alpha[0]
        w.done(w.call(target, x, other))

    return rewrite


def _between(w: Writer) -> None:
    made, low, high = w.given.values()
    for target, bound in ((aten.maximum.default, low), (aten.minimum.default, high)):
        made = made if bound is None else w.call(target, made, bound)
    if made.meta["val"].shape == w.node.meta["val"].shape:
        w.done(made)


def _quotient(w: Writer) -> None:
    first, second = w.given["self"], w.given["other"]
    if not isinstance(second, Node) or second.op == "get_attr":
        return
    w.done(w.call(aten.mul.Tensor, first, w.call(aten.reciprocal.default, second)))


def _rounded(w: Writer) -> None:
    """A table takes what is divided by a number; of two tensors the product is rounded."""
    first, second = w.given["self"], w.given["other"]
    if not isinstance(second, Node) or second.op == "get_attr":
        return
    if not w.node.meta["val"].is_floating_point():
        return
    made = w.call(aten.mul.Tensor, first, w.call(aten.reciprocal.default, second))
    mode = w.given.get("rounding_mode", "floor")
    rounds = {"floor": aten.floor.default, "trunc": aten.trunc.default}
    w.done(w.call(rounds[mode], made) if mode else made)


def _extreme(target: Any) -> Callable[[Writer], None]:
    def rewrite(w: Writer) -> None:
        for user in list(w.node.users):
            if not user.users:
                w.node.graph.erase_node(user)
        if w.node.users and all(user.args[1] == 0 for user in w.node.users):
            w.picked(w.call(target, w.given["self"], [w.given["dim"]], w.given["keepdim"]))

    return rewrite


def _put(w: Writer, row: Node, dim: int, begin: int, end: int) -> None:
    """Let ``row`` stand in a tensor from ``begin`` to ``end``."""
    x = w.given["self"]
    size = x.meta["val"].shape[dim]
    before = [part(w, x, dim, 0, begin)] if begin > 0 else []
    behind = [part(w, x, dim, end, size)] if end < size else []
    parts = [*before, row, *behind]
    w.done(row if len(parts) == 1 else w.call(aten.cat.default, parts, dim))


def _slice_scatter(w: Writer) -> None:
    given = w.given
    size = given["self"].meta["val"].shape[given["dim"]]
    begin, end, step = slice(given["start"], given["end"], given["step"]).indices(size)
    if step == 1 and end > begin:
        _put(w, given["src"], given["dim"], begin, end)


def _select_scatter(w: Writer) -> None:
    given = w.given
    index = given["index"] % given["self"].meta["val"].shape[given["dim"]]
    row = w.call(aten.unsqueeze.default, given["src"], given["dim"])
    _put(w, row, given["dim"], index, index + 1)


def _variance(w: Writer) -> None:
    given = w.given
    x = given["self"]
    shape = x.meta["val"].shape
    dims = sorted(d % len(shape) for d in given["dim"] or range(len(shape)))
    correction = given.get("correction", 1 if given.get("unbiased", True) else 0)
    count = prod(int(shape[d]) for d in dims)
    divisor = count - (1 if correction is None else correction)
    if divisor <= 0:
        return
    apart = w.call(aten.sub.Tensor, x, w.call(aten.mean.dim, x, dims, True))
    squares = w.call(aten.mul.Tensor, apart, apart)
    made = w.call(aten.mean.dim, squares, dims, given["keepdim"])
    made = made if divisor == count else w.call(aten.mul.Tensor, made, count / divisor)
    is_root = w.node.target in (aten.std.correction, aten.std.dim)
    w.done(w.call(aten.sqrt.default, made) if is_root else made)


def _group_norm(w: Writer) -> None:
    """Normalize groups as rows; what is of channels is multiplied and added behind it."""
    given = w.given
    x, shape = given["input"], list(w.node.meta["val"].shape)
    groups = given["num_groups"]
    count = prod(map(int, shape[1:])) // groups
    made = w.call(aten.view.default, x, [shape[0], groups, count])
    made = w.call(aten.layer_norm.default, made, [count], None, None, given["eps"])
    made = w.call(aten.view.default, made, shape)
    for target, each in ((aten.mul.Tensor, given["weight"]), (aten.add.Tensor, given["bias"])):
        if each is not None:
            by_channel = [shape[1], *[1] * (len(shape) - 2)]
            made = w.call(target, made, w.parameter(each, by_channel))
    w.done(made)


def _batch_norm(w: Writer) -> None:
    x, weight, bias, mean, variance, momentum, eps = w.given.values()
    if all(user.args[1] == 0 for user in w.node.users):
        given = (x, weight, bias, mean, variance, False, momentum, eps, False)
        w.picked(w.call(aten.batch_norm.default, *given))


def _log_softmax(w: Writer) -> None:
    """x - max - log(sum(exp(x - max)))."""
    x, dim, *_ = w.given.values()
    if not x.meta["val"].dim() or x.meta["val"].dtype != w.node.meta["val"].dtype:
        return
    below = w.call(aten.sub.Tensor, x, w.call(aten.amax.default, x, [dim], True))
    total = w.call(aten.sum.dim_IntList, w.call(aten.exp.default, below), [dim], False)
    logarithm = w.call(aten.unsqueeze.default, w.call(aten.log.default, total), dim)
    w.done(w.call(aten.sub.Tensor, below, logarithm))


def _vector_norm(w: Writer) -> None:
    given = w.given
    x, order = given["self"], given["ord"]
    shape, dims = x.meta["val"].shape, given["dim"]
    dims = list(range(len(shape))) if dims is None else [dims] if isinstance(dims, int) else dims
    if not dims or given.get("dtype") is not None or order not in (1, 2, float("inf")):
        return
    rest = (list(dims), given["keepdim"])
    if order == 2:
        squares = w.call(aten.mul.Tensor, x, x)
        w.done(w.call(aten.sqrt.default, w.call(aten.sum.dim_IntList, squares, *rest)))
        return
    target = aten.sum.dim_IntList if order == 1 else aten.amax.default
    w.done(w.call(target, w.call(aten.abs.default, x), *rest))


def _strided(w: Writer) -> None:
    """Of all elements in their order it is a view."""
    given = w.given
    x, made = given["self"].meta["val"], w.node.meta["val"]
    dense = torch.empty(list(made.shape), device="meta").stride()
    if given["storage_offset"] or x.numel() != made.numel() or tuple(given["stride"]) != dense:
        return
    if x.is_contiguous():
        w.done(w.call(aten.view_copy.default, given["self"], list(made.shape)))


def _gru(w: Writer) -> None:
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
    w: Writer, x: Node, state: Node, held: list[Node], time: int, is_back: bool
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


def _thirds(w: Writer, value: Node) -> list[Node]:
    size = value.meta["val"].shape[-1] // 3
    return [w.call(aten.slice.Tensor, value, -1, i * size, (i + 1) * size) for i in range(3)]


def _copied(w: Writer) -> None:
    """What was there is not read, nor changed where others see it."""
    before, source, made = w.given["self"], w.given["src"], w.node.meta["val"]
    is_own = before.target in FILLED and len(before.users) == 1
    if w.node.target is aten.copy_.default and not is_own:
        return
    if source.meta["val"].dtype == made.dtype:
        w.done(w.call(aten.expand.default, source, list(made.shape)))
        if before.op == "call_function" and not before.users:
            before.graph.erase_node(before)


def _full_like(w: Writer) -> None:
    made = w.node.meta["val"]
    number = float(w.given["fill_value"])
    number = number if made.is_floating_point() else int(number)
    w.done(w.call(aten.full.default, list(made.shape), number, dtype=made.dtype))


def _rows(w: Writer) -> None:
    """Pick rows of what is not a constant."""
    table, index = w.given["weight"], w.given["indices"]
    if table.op != "get_attr":
        w.done(w.call(aten.index.Tensor, table, [index]))


REWRITES: dict[Any, Callable[[Writer], None]] = {
    **FRAMES,
    aten._native_batch_norm_legit_no_training.default: _batch_norm,
    aten.adaptive_avg_pool2d.default: _adaptive,
    aten.add.Scalar: _by_number(aten.add.Tensor),
    aten.addmm.default: onto(aten.mm.default),
    aten.as_strided_copy.default: _strided,
    aten.avg_pool1d.default: _average,
    aten.avg_pool2d.default: _unbatched,
    aten.baddbmm.default: onto(aten.bmm.default),
    aten.clamp.Tensor: _between,
    aten.copy.default: _copied,
    aten.copy_.default: _copied,
    aten.div.Scalar: _by_number(aten.div.Tensor),
    aten.div.Tensor: _quotient,
    aten.div.Tensor_mode: _rounded,
    aten.dot.default: _matmul,
    aten.embedding.default: _rows,
    aten.floor_divide.default: _rounded,
    aten.full_like.default: _full_like,
    aten.glu.default: _glu,
    aten.group_norm.default: _group_norm,
    aten.gru.input: _gru,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.log_softmax.int: _log_softmax,
    aten.matmul.default: _matmul,
    aten.max.dim: _extreme(aten.amax.default),
    aten.max_pool1d.default: _largest,
    aten.max_pool2d.default: _unbatched,
    aten.mean.default: _of_all(aten.mean.dim),
    aten.min.dim: _extreme(aten.amin.default),
    aten.mul.Scalar: _by_number(aten.mul.Tensor),
    aten.mv.default: _matmul,
    aten.pad.default: framed(""),
    aten.pixel_unshuffle.default: unshuffled,
    aten.select_scatter.default: _select_scatter,
    aten.slice_scatter.default: _slice_scatter,
    aten.std.correction: _variance,
    aten.std.dim: _variance,
    aten.sub.Scalar: _by_number(aten.sub.Tensor),
    aten.sum.default: _of_all(aten.sum.dim_IntList),
    aten.unfold.default: windows,
    aten.unfold_copy.default: windows,
    aten.var.correction: _variance,
    aten.var.dim: _variance,
}
LOWERED: dict[Any, Callable[[Writer], None]] = {
    **FRAMES,
    aten._adaptive_avg_pool2d.default: _adaptive,
    aten._log_softmax.default: _log_softmax,
    aten.max_pool2d_with_indices.default: _without_indices,
    **{
        target: REWRITES[target]
        for target in (
            aten.addmm.default,
            aten.as_strided_copy.default,
            aten.avg_pool2d.default,
            aten.clamp.Tensor,
            aten.copy.default,
            aten.full_like.default,
            aten.glu.default,
            aten.max.dim,
            aten.max_pool2d.default,
            aten.mean.default,
            aten.min.dim,
            aten.pixel_unshuffle.default,
            aten.select_scatter.default,
            aten.slice_scatter.default,
            aten.std.correction,
            aten.unfold_copy.default,
            aten.var.correction,
        )
    },
}
