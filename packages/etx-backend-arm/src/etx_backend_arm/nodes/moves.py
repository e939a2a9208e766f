# SPDX-License-Identifier: BSD-3-Clause
"""Operators that move values, and compute none: the same in both profiles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import torch
from etx_exir.ir.dim_order import CLONE
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import (
    Check,
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    picked_only,
    static_shape,
)
from etx_backend_arm.quantized import QUANTIZE, Look, Step, find_step, split_of
from etx_backend_arm.tosa import Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
Emit = Callable[[Values, Node], None]
SPLITS = (aten.split_copy.Tensor, aten.split_with_sizes_copy.default, aten.unbind_copy.int)


def in_both(*targets: object, when: Sequence[Check] = ()) -> Callable[[Emit], Emit]:
    """Register a function as the lowering of ``targets`` in both profiles."""

    def register(emit: Emit) -> Emit:
        for target in targets:
            lowers(target, when=(integers, static_shape, *when), profile=Profile.INT)(emit)
            lowers(target, when=(floating, static_shape, *when))(emit)
        return emit

    return register


PLAIN_TYPES = (torch.bool, torch.int8, torch.int16, torch.int32)
MOVED: dict[object, Emit] = {}
"""Operators that move numbers and truths as they are."""


def plain(node: Node, look: Look) -> str | None:
    """All tensors are of one type, of truths or plain integers."""
    types = {each.meta["val"].dtype for each in (node, *node.all_input_nodes)}
    if len(types) == 1 and types <= set(PLAIN_TYPES):
        return None
    return f"{node.name} is not dequantized, nor of int8, int16, int32 or bool"


def truths(node: Node, look: Look) -> str | None:
    """All tensors are of truths, which the profile FP has, too."""
    types = {each.meta["val"].dtype for each in (node, *node.all_input_nodes)}
    return None if types == {torch.bool} else f"{node.name} is not of floats, nor of truths"


def as_they_are(*targets: object, when: Sequence[Check] = ()) -> Callable[[Emit], Emit]:
    """Register a function for numbers and truths, too."""

    def register(emit: Emit) -> Emit:
        for target in targets:
            MOVED[target] = emit
            lowers(target, when=(plain, static_shape, *when), profile=Profile.INT)(emit)
            lowers(target, when=(truths, static_shape, *when))(emit)
        return emit

    return register


def cut(call: Call, value: str, start: list[int], size: list[int], suffix: str) -> str:
    """Return a part of a value."""
    shape = call.graph.shape(value)
    if shape == size:
        return value
    operands = [value, call.graph.shape_constant(start), call.graph.shape_constant(size)]
    return call.emit(Op.SLICE, fbs.SliceAttribute(), operands, suffix, size)


def padded(call: Call, value: str, pads: list[tuple[int, int]], number: float, suffix: str) -> str:
    """Return a value with ``number`` around it: behind and before each dimension."""
    if not any(map(any, pads)):
        return value
    graph = call.graph
    dtype = graph.dtype(value)
    constant = call.values.number(number, 1, dtype)
    flat = [each for pair in pads for each in pair]
    sizes = [size + sum(pair) for size, pair in zip(graph.shape(value), pads, strict=True)]
    operands = [value, graph.shape_constant(flat), constant]
    return call.emit(Op.PAD, fbs.PadAttribute(), operands, suffix, sizes)


def every(
    call: Call, value: str, at: int, first: int, count: int, step: int, suffix: str = ""
) -> str:
    """Return ``count`` elements of a dimension: from ``first`` on, each ``step``-th."""
    shape, begin = call.graph.shape(value), [0] * len(call.graph.shape(value))
    begin[at] = first
    reach = min(count * step, shape[at] - first)
    size = [*shape[:at], reach, *shape[at + 1 :]]
    made = cut(call, value, begin, size, f"part{suffix}")
    if step == 1:
        return made
    pads = [(0, 0)] * len(shape)
    pads[at] = (0, count * step - reach)
    made = padded(call, made, pads, 0.0, f"whole{suffix}")
    grouped = [*shape[:at], count, step, *shape[at + 1 :]]
    made = call.reshape(made, grouped, f"grouped{suffix}")
    one = [*shape[:at], count, 1, *shape[at + 1 :]]
    made = cut(call, made, [0] * len(grouped), one, f"first{suffix}")
    return call.reshape(made, [*shape[:at], count, *shape[at + 1 :]], f"as{suffix}")


def _plain(values: Values, node: Node) -> Call:
    return Call(values, node, "nchw")


@as_they_are(
    aten.view_copy.default,
    aten.squeeze_copy.dims,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.default,
    aten.unsqueeze_copy.default,
    aten.reshape.default,
    aten.flatten.using_ints,
)
@in_both(
    aten.view_copy.default,
    aten.squeeze_copy.dims,
    aten.squeeze_copy.dim,
    aten.squeeze_copy.default,
    aten.unsqueeze_copy.default,
    aten.reshape.default,
    aten.flatten.using_ints,
)
def reshaped(values: Values, node: Node) -> None:
    """Lower to RESHAPE."""
    call = _plain(values, node)
    call.moved(call.reshape(call.get(call.activations[0]), call.shape, "as"))


def in_order(node: Node, look: Look) -> str | None:
    """Dimensions lie in memory in their order."""
    order: Any = node.kwargs.get("dim_order")
    if order is None or list(order) == sorted(order):
        return None
    return f"{node.name} has the memory order {order}"


@in_both(aten.clone.default, aten.alias_copy.default, aten.dropout.default, aten._to_copy.default)
@in_both(CLONE, when=(in_order,))
def kept(values: Values, node: Node) -> None:
    """Lower to nothing."""
    call = Call(values, node)
    call.moved(call.get(call.activations[0]))


@lowers(QUANTIZE, when=(integers, static_shape), profile=Profile.INT)
def rescaled(values: Values, node: Node) -> None:
    """Lower what quantizes a dequantized value again to RESCALE."""
    call = Call(values, node)
    call.moved(call.get(call.activations[0]))


def _transposed(values: Values, node: Node, perms: list[int]) -> None:
    call = _plain(values, node)
    source = call.get(call.activations[0])
    dtype = call.graph.dtype(source)
    call.moved(call.graph.transpose(source, perms, call.fresh("as"), call.shape, dtype))


@as_they_are(aten.permute_copy.default)
@in_both(aten.permute_copy.default)
def permuted(values: Values, node: Node) -> None:
    """Lower to TRANSPOSE."""
    rank = node.meta["val"].dim()
    _transposed(values, node, [dim % rank for dim in arguments(node)[1]])


@as_they_are(aten.transpose_copy.int)
@in_both(aten.transpose_copy.int)
def swapped(values: Values, node: Node) -> None:
    """Lower to TRANSPOSE of two dimensions."""
    perms = list(range(node.meta["val"].dim()))
    first, second = arguments(node)[1:3]
    perms[first], perms[second] = perms[second], perms[first]
    _transposed(values, node, perms)


@as_they_are(aten.cat.default)
@in_both(aten.cat.default)
def joined(values: Values, node: Node) -> None:
    """Lower to CONCAT of values in the scale of the result."""
    call = Call(values, node)
    parts = [call.aligned(each) for each in call.operands if each.meta["val"].numel()]
    axis = call.dim(arguments(node)[1])
    made = call.emit(Op.CONCAT, fbs.ConcatAttribute(axis=axis), parts, "joined", call.shape)
    call.same(made)


@as_they_are(aten.stack.default)
@in_both(aten.stack.default)
def stacked(values: Values, node: Node) -> None:
    """Lower to CONCAT of values with one dimension more, in the scale of the result."""
    call = _plain(values, node)
    axis = arguments(node)[1] % len(call.shape)
    one = [*call.shape[:axis], 1, *call.shape[axis + 1 :]]
    parts = [
        call.reshape(call.aligned(each), one, f"one_{i}") for i, each in enumerate(call.operands)
    ]
    made = call.emit(Op.CONCAT, fbs.ConcatAttribute(axis=axis), parts, "joined", call.shape)
    call.same(made)


@as_they_are(aten.slice_copy.Tensor)
@in_both(aten.slice_copy.Tensor)
def sliced(values: Values, node: Node) -> None:
    """Lower to SLICE; every n-th element is a part of one in groups of n."""
    call = Call(values, node)
    _, dim, start, _, step = arguments(node)
    source = call.get(call.activations[0])
    shape, at = call.graph.shape(source), call.dim(dim)
    count, length = call.shape[at], shape[at]
    first = 0 if start is None else min(max(start + length if start < 0 else start, 0), length)
    made = every(call, source, at, first, count, step)
    call.moved(made)


@as_they_are(aten.select_copy.int)
@in_both(aten.select_copy.int)
def selected(values: Values, node: Node) -> None:
    """Lower to SLICE and RESHAPE."""
    call = _plain(values, node)
    _, dim, index = arguments(node)
    source = call.get(call.activations[0])
    shape = call.graph.shape(source)
    at = dim % len(shape)
    begin = [0] * len(shape)
    begin[at] = index % shape[at]
    made = cut(call, source, begin, [*shape[:at], 1, *shape[at + 1 :]], "part")
    call.moved(call.reshape(made, call.shape, "as"))


def part_of_split(node: Node, look: Look) -> str | None:
    """It picks a part of a split."""
    source = split_of(node)
    if source is None or source.target not in SPLITS:
        return f"{node.name} picks a result of {node.args[0]}, which has no lowering"
    return None


def whole(values: Values, node: Node) -> None:
    """Lower to nothing: what picks its results is lowered."""


for target in SPLITS:
    lowers(target, when=(floating, static_shape, picked_only))(whole)


def all_parts(node: Node, look: Look) -> str | None:
    """All parts of the split are quantized alike, or none is."""
    split = split_of(node)
    assert split is not None
    steps = [isinstance(find_step(each, look), Step) for each in split.users]
    return None if len(set(steps)) == 1 else f"only some results of {split.name} are quantized"


@in_both(operator.getitem, when=(part_of_split, all_parts))
def part(values: Values, node: Node) -> None:
    """Lower a part of a split to SLICE."""
    split = split_of(node)
    assert split is not None
    call = _plain(values, node)
    source = call.get(call.activations[0])
    shape = call.graph.shape(source)
    dim = arguments(split)[1 if split.target is aten.unbind_copy.int else 2]
    at, index = dim % len(shape), int(node.args[1])  # type: ignore[arg-type]
    unbound = split.target is aten.unbind_copy.int
    sizes = [1 if unbound else int(each.shape[at]) for each in split.meta["val"]]
    begin = [0] * len(shape)
    begin[at] = [0, *accumulate(sizes)][index]
    made = cut(call, source, begin, [*shape[:at], sizes[index], *shape[at + 1 :]], "part")
    call.moved(call.reshape(made, call.shape, "as"))


@as_they_are(aten.expand_copy.default, aten.repeat.default)
@in_both(aten.expand_copy.default, aten.repeat.default)
def repeated(values: Values, node: Node) -> None:
    """Lower to TILE."""
    call = _plain(values, node)
    source = call.get(call.activations[0])
    rank = len(call.shape)
    sizes = call.graph.shape(source)
    source = call.reshape(source, [1] * (rank - len(sizes)) + sizes, "of_rank")
    times = [
        made // given for made, given in zip(call.shape, call.graph.shape(source), strict=True)
    ]
    if prod(times) != 1:
        operands = [source, call.graph.shape_constant(times)]
        source = call.emit(Op.TILE, fbs.TileAttribute(), operands, "tiled", call.shape)
    call.moved(source)


@in_both(aten.constant_pad_nd.default)
def surrounded(values: Values, node: Node) -> None:
    """Lower to PAD in the scale of the result, and to SLICE where padding is negative."""
    call = Call(values, node)
    _, given, number = arguments(node)
    source = call.aligned(call.activations[0])
    shape = call.graph.shape(source)
    pads = [(0, 0)] * len(shape)
    for i in range(len(given) // 2):
        pads[call.dim(-1 - i)] = (given[2 * i], given[2 * i + 1])
    begin = [max(-before, 0) for before, _ in pads]
    size = [n + min(a, 0) + min(b, 0) for n, (a, b) in zip(shape, pads, strict=True)]
    made = cut(call, source, begin, size, "part")
    point = call.step.form.integer(float(number)) if call.step else float(number)
    around = [(max(before, 0), max(behind, 0)) for before, behind in pads]
    call.same(padded(call, made, around, point, "padded"))


@as_they_are(aten.flip.default)
@in_both(aten.flip.default)
def reversed_(values: Values, node: Node) -> None:
    """Lower to REVERSE, once a dimension."""
    call = Call(values, node)
    value = call.get(call.activations[0])
    for dim in arguments(node)[1]:
        axis = call.dim(dim)
        attribute = fbs.ReverseAttribute(axis=axis)
        value = call.emit(Op.REVERSE, attribute, [value], f"reversed_{axis}", call.shape)
    call.moved(value)


@in_both(aten.pixel_shuffle.default)
def shuffled(values: Values, node: Node) -> None:
    """Lower to TRANSPOSE between two RESHAPEs."""
    call = _plain(values, node)
    factor = arguments(node)[1]
    source = call.get(call.activations[0])
    *batch, channels, height, width = call.graph.shape(source)
    made = channels // factor**2
    parts = [prod(batch) * made, factor, factor, height, width]
    grouped = call.reshape(source, parts, "grouped")
    perms = [0, 3, 1, 4, 2]
    sizes = [parts[i] for i in perms]
    dtype = call.graph.dtype(source)
    moved = call.graph.transpose(grouped, perms, call.fresh("moved"), sizes, dtype)
    call.moved(call.reshape(moved, call.shape, "as"))
