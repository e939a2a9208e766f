# SPDX-License-Identifier: BSD-3-Clause
"""Means over dimensions that lie next to each other: a product where they are innermost, else
global average pooling of a 4-d value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from etx_exir.ir.ops import arguments
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import FullyConnected, Operator, Unary
from etx_backend_xnnpack.builder import FLOATS, NONE, Affine
from etx_backend_xnnpack.layout import Order, Size
from etx_backend_xnnpack.nodes.table import lowers, shape_of
from etx_backend_xnnpack.quantized import argument
from etx_backend_xnnpack.values import Stored, Values

aten = torch.ops.aten

KEEP_DIMS = 64


def unknown(sizes: Sequence[Size]) -> int:
    """Return how many sizes are symbolic."""
    return sum(not isinstance(size, int) for size in sizes)


def mean_over_last(values: Values, number: int, sizes: Sequence[Size]) -> int:
    """Return the mean over the innermost dimension, which stays with size one."""
    if not isinstance(sizes[-1], int):
        return mean_over(values, number, sizes, len(sizes) - 1, len(sizes))
    return _row_means(values, number, sizes)


def _row_means(values: Values, number: int, sizes: Sequence[Size]) -> int:
    """Multiply with a column of one over the width: pooling one channel is ten times slower."""
    row = values.builder.constant(torch.full((1, sizes[-1]), 1 / sizes[-1]), packed=True)
    target = values.builder.value([*sizes[:-1], 1])
    operator = FullyConnected(input1_id=number, filter_id=row, bias_id=NONE, output_id=target)
    values.builder.node(Operator.FullyConnected, operator)
    return target


def mean_over(
    values: Values,
    number: int,
    sizes: Sequence[Size],
    start: int,
    stop: int,
    at: tuple[Affine | None, Affine | None] = (None, None),
) -> int:
    """Return the mean over dimensions `start` to `stop` of a value, which stay with size one.

    `at` are the parameters of an int8 argument and result.
    """
    left = [1 if start <= dim < stop else size for dim, size in enumerate(sizes)]
    direct = len(sizes) == 4 and (start, stop) == (1, 3)
    if not direct and at == (None, None) and _are_inner(sizes, start, stop):
        rows = [math.prod(sizes[:start]), math.prod(sizes[start:stop])]
        source = number if stop == start + 1 == len(sizes) else values.shaped(number, rows)
        if source == number:
            return _row_means(values, number, sizes)
        return values.shaped(_row_means(values, source, rows), left)
    flat = [math.prod(sizes[:start]), math.prod(sizes[start:stop]), 1, math.prod(sizes[stop:])]
    source = number if direct else values.shaped(number, flat, at[0])
    pooled = values.builder.value(left if direct else [flat[0], 1, 1, flat[3]], at[1])
    operator = Unary(input_id=source, output_id=pooled, flags=KEEP_DIMS)
    values.builder.node(Operator.GlobalAvgPooling2d, operator)
    return pooled if direct else values.shaped(pooled, left, at[1])


def _are_inner(sizes: Sequence[Size], start: int, stop: int) -> bool:
    """Tell whether known dimensions lie innermost."""
    known = all(isinstance(size, int) for size in sizes[start:stop])
    return known and all(layout.is_one(size) for size in sizes[stop:])


def reduced(node: Node) -> list[int]:
    """Return the dimensions that a node takes the mean of, all where it names none."""
    rank = len(shape_of(node.args[0]))
    dims: Any = argument(node, "dim")
    dims = [dims] if isinstance(dims, int) else dims
    return sorted({dim % rank for dim in dims}) if dims else list(range(rank))


def known_mean(node: Node, constants: Constants) -> str | None:
    """Require sizes that a reshape can say."""
    sizes, dims = shape_of(node.args[0]), reduced(node)
    dtype = arguments(node).get("dtype")
    if dtype not in (None, *FLOATS):
        return f"dtype is {dtype}"
    kept = [size for dim, size in enumerate(sizes) if dim not in dims]
    if unknown(kept) > 1 or (unknown(kept) and unknown(sizes) > unknown(kept)):
        last = dims == [len(sizes) - 1] and isinstance(sizes[-1], int)
        return None if last and argument(node, "keepdim") else "several sizes are symbolic"
    if unknown(sizes) > 1 and not (len(sizes) == 4 and dims == [2, 3]):
        return "several sizes are symbolic"
    return None


def adjacent(order: Order, dims: list[int]) -> tuple[int, int] | None:
    """Return where `dims` lie in an order, None where something lies between them."""
    places = sorted(order.index(dim) for dim in dims)
    if places != list(range(places[0], places[0] + len(places))):
        return None
    return places[0], places[-1] + 1


@lowers(aten.mean.dim, when=[known_mean], int8=True, wide=True)
def mean(values: Values, node: Node) -> None:
    """Emit a pooling, between reshapes where the dimensions lie otherwise."""
    average(values, node, values.quantized(node.args[0]))


def average(values: Values, node: Node, form: Stored | None) -> None:
    """Emit a mean, in int8 if it is one of int8 numbers that is quantized again."""
    source: Any = node.args[0]
    dims, sizes = reduced(node), values.sizes(source)
    over_last = dims == [len(sizes) - 1] and unknown(sizes) > 1
    form = None if over_last else form
    result = values.result(node, quantizes=form is not None)
    order = form.order if form and result.affine else values.natural(source)
    place = adjacent(order, dims)
    if place is None:
        rest = [dim for dim in order if dim not in dims]
        order, place = (*rest, *dims), (len(rest), len(order))
    at = form.affine if form and result.affine else None
    number = values.get(source, order, at)
    now = layout.ordered(sizes, order)
    if over_last and order[-1] == dims[0]:
        values.define(result.node, mean_over_last(values, number, now), order)
        return
    pooled = mean_over(values, number, now, *place, (at, result.affine))
    if argument(node, "keepdim"):
        values.define(result.node, pooled, order, result.affine)
        return
    kept = [dim for dim in range(len(sizes)) if dim not in dims]
    lower = tuple(kept.index(dim) for dim in order if dim in kept)
    left = layout.ordered(values.sizes(node), lower)
    values.define(result.node, values.shaped(pooled, left, result.affine), lower, result.affine)


def sum_is_known(node: Node, constants: Constants) -> str | None:
    """Require a mean that is known, of a known number of elements."""
    reason = known_mean(node, constants)
    counts = [shape_of(node.args[0])[dim] for dim in reduced(node)]
    return reason or ("it sums a symbolic number of elements" if unknown(counts) else None)


@lowers(aten.sum.dim_IntList, when=[sum_is_known], wide=True, note="a mean times a number")
def total(values: Values, node: Node) -> None:
    """Emit a mean, times the number of elements."""
    average(values, node, None)
    count = math.prod(values.sizes(node.args[0])[dim] for dim in reduced(node))
    form = values.forms(node)[0]
    target = values.builder.value(layout.ordered(values.sizes(node), form.order))
    times = values.builder.constant(torch.tensor([float(count)]))
    values.builder.binary(Operator.Multiply, form.id, times, target)
    values.redefine(node, target, form.order)
