# SPDX-License-Identifier: BSD-3-Clause
"""Products of matrices that both are computed, and attention."""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.analysis.value_range import is_finite
from etx_exir.ir.constants import Constants
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import Binary, Operator
from etx_backend_xnnpack.builder import Range
from etx_backend_xnnpack.layout import Size, plain
from etx_backend_xnnpack.nodes.linear import mm_of_constant
from etx_backend_xnnpack.nodes.means import mean_over_last
from etx_backend_xnnpack.nodes.shape import ATTENTION, attended, cut, join
from etx_backend_xnnpack.nodes.table import Work, lowers, shape_of
from etx_backend_xnnpack.quantized import argument
from etx_backend_xnnpack.values import Stored, Values

aten = torch.ops.aten

TRANSPOSE_B = 1
MOST_MASK_BYTES = 1 << 24
NEAR = 2.0**-122
SINK = Range(-2e30, -1e30)


def product(values: Values, a: int, b: int, sizes: list[Size], flags: int = 0) -> int:
    """Multiply batches of matrices; return the value."""
    target = values.builder.value(sizes)
    operator = Binary(input1_id=a, input2_id=b, output_id=target, flags=flags)
    values.builder.node(Operator.BatchMatrixMultiply, operator)
    return target


@lowers(aten.bmm.default, work=Work.HEAVY, kind="product")
def bmm(values: Values, node: Node) -> None:
    """Emit a product; what lies transposed on the right stays so."""
    left, right = node.args[:2]
    turned = _innermost_swapped(values, right)
    order = (*plain(len(values.sizes(right)))[:-2], *_swapped(right)) if turned else None
    a, b = values.get(left), values.get(right, order)
    target = values.output(values.result(node), plain(len(values.sizes(node))))
    flags = TRANSPOSE_B if turned else 0
    operator = Binary(input1_id=a, input2_id=b, output_id=target, flags=flags)
    values.builder.node(Operator.BatchMatrixMultiply, operator)


def _swapped(node: Any) -> tuple[int, int]:
    rank = len(shape_of(node))
    return rank - 1, rank - 2


def _innermost_swapped(values: Values, node: Any) -> bool:
    """Tell whether a value lies with its two innermost dimensions swapped."""
    rank = len(values.sizes(node))
    return values.natural(node) == (*plain(rank)[:-2], rank - 1, rank - 2)


@lowers(aten.mm.default, work=Work.HEAVY, kind="linear")
def mm(values: Values, node: Node) -> None:
    """Emit a fully connected node for a constant on the right, else a product."""
    if values.tensor(node.args[1]) is not None:
        mm_of_constant(values, node)
    else:
        bmm(values, node)


def attention_form(node: Node, constants: Constants) -> str | None:
    """Require four dimensions, heads that share keys evenly, no dropout; a causal mask of 16 MB."""
    query, key, value = node.args[:3]
    if argument(node, "dropout_p"):
        return f"dropout_p is {argument(node, 'dropout_p')}; expected 0"
    if any(len(shape_of(each)) != 4 for each in (query, key, value)):
        return "query, key and value have other than four dimensions"
    batches = [shape_of(each)[0] for each in (query, key, value)]
    if any(batch != batches[0] for batch in batches):
        return "query, key and value have different batches"
    heads = [shape_of(each)[1] for each in (query, key, value)]
    if heads[1] != heads[2] or heads[0] % heads[1]:
        return f"{heads[0]} heads over {heads[1]} and {heads[2]}"
    return _mask_form(node, constants)


def _mask_form(node: Node, constants: Constants) -> str | None:
    query, key = node.args[:2]
    rows, columns = shape_of(query)[2], shape_of(key)[2]
    mask = argument(node, "attn_mask")
    if argument(node, "is_causal"):
        if not (isinstance(rows, int) and isinstance(columns, int)):
            return "a causal mask of sizes that are known at run time only"
        if 4 * rows * columns > MOST_MASK_BYTES:
            return f"its causal mask of {rows} x {columns} would take more than 16 MB"
    if mask is not None and shape_of(query)[1] != shape_of(key)[1]:
        sizes = shape_of(mask)
        if len(sizes) > 2 and sizes[-3] not in (1, shape_of(query)[1]):
            return "its mask does not fit grouped heads"
    return None


@lowers(ATTENTION, when=[attention_form], work=Work.HEAVY, whole=True, kind="attention")
def attention(values: Values, node: Node) -> None:
    """Emit two products and a softmax between them."""
    query, key, value = node.args[:3]
    builder = values.builder
    batch, heads, rows, width = values.sizes(query)
    shared, columns = values.sizes(key)[1:3]
    groups = heads // shared
    given = argument(node, "scale")
    factor = builder.number(given if given else 1 / math.sqrt(width))
    scaled = _multiplied(values, values.get(query), factor, values.sizes(query))
    lines = [batch, shared, groups * rows, columns]
    if groups > 1:
        scaled = values.shaped(scaled, [batch, shared, groups * rows, width])
    scores = _scores(values, scaled, attended(key), lines)
    apart = [batch, shared, groups, rows, columns] if groups > 1 else lines
    mask, hides = _mask(values, node, groups)
    if mask is not None:
        if groups > 1:
            scores = values.shaped(scores, apart)
        masked = builder.binary(Operator.Add, scores, mask, builder.value(apart))
        scores = values.shaped(masked, lines) if groups > 1 else masked
    in_parts = len(attended(value)) > 1
    if hides and in_parts:
        scores, lines = _with_sink(values, scores, lines)
    weights = builder.unary(Operator.Softmax, scores, builder.value(lines))
    outer = values.sizes(value)[3]
    mixed = _mixed(values, weights, lines, attended(value), outer, int(hides))
    if groups > 1:
        mixed = values.shaped(mixed, [batch, heads, rows, outer])
    if hides and not in_parts:
        given_mask = argument(node, "attn_mask")
        seen = _seen(values, values.get(given_mask), values.sizes(given_mask))
        mixed = _multiplied(values, mixed, seen, [batch, heads, rows, outer])
    values.define(node, mixed, plain(4))


def _scores(values: Values, query: int, keys: list[Node], lines: list[Size]) -> int:
    """Multiply with the keys, one behind the other."""
    parts = []
    for key in keys:
        sizes = [*lines[:3], values.sizes(key)[2]]
        parts.append(product(values, query, values.get(key), sizes, TRANSPOSE_B))
    return parts[0] if len(parts) == 1 else join(values, parts, 3, values.builder.value(lines))


def _mixed(
    values: Values, weights: int, lines: list[Size], parts: list[Node], outer: Size, start: int
) -> int:
    """Return the sums of the values with these weights, which begin at `start`."""
    joined = [*lines[:3], outer]
    if len(parts) == 1:
        return product(values, weights, values.get(parts[0]), joined)
    sums = []
    for part in parts:
        length = values.sizes(part)[2]
        some = cut(values, Stored(weights, plain(4)), lines, 3, start, length)
        sums.append(product(values, some, values.get(part), joined))
        start += length
    return values.builder.binary(Operator.Add, sums[0], sums[1], values.builder.value(joined))


def _multiplied(values: Values, a: int, b: int, sizes: list[Size]) -> int:
    return values.builder.binary(Operator.Multiply, a, b, values.builder.value(sizes))


def _mask(values: Values, node: Node, groups: int) -> tuple[int | None, bool]:
    """Return what is added to the scores, and whether it may hide all of a row."""
    rows, columns = values.sizes(node.args[0])[2], values.sizes(node.args[1])[2]
    if argument(node, "is_causal"):
        hidden = torch.full((rows, columns), -math.inf).triu(1)
        return values.builder.constant(hidden), False
    mask = argument(node, "attn_mask")
    if mask is None:
        return None, False
    number, sizes = values.get(mask), values.sizes(mask)
    if is_finite(mask, values.constants):
        return _grouped(values, number, sizes, groups), False
    builder = values.builder
    low = builder.number(torch.finfo(torch.float32).min)
    finite = builder.binary(Operator.Maximum, number, low, builder.value(sizes))
    return _grouped(values, finite, sizes, groups), True


def _with_sink(values: Values, scores: int, lines: list[Size]) -> tuple[int, list[Size]]:
    """Add a first column that takes all weight of rows in which all is hidden, and else none.

    Its score is above the lowest number, with which places are hidden, and below all others.
    """
    first = cut(values, Stored(scores, plain(4)), lines, 3, 0, 1)
    sink = values.builder.value([*lines[:3], 1])
    values.builder.unary(Operator.Clamp, first, sink, SINK)
    wide = [*lines[:3], lines[3] + 1]
    return join(values, [sink, scores], 3, values.builder.value(wide)), wide


def _grouped(values: Values, mask: int, sizes: list[Size], groups: int) -> int:
    """Give a mask the dimension of the heads that share keys."""
    if groups == 1 or len(sizes) < 3:
        return mask
    heads = [1, 1] if layout.is_one(sizes[-3]) else [sizes[-3] // groups, groups]
    return values.shaped(mask, [*sizes[:-3], *heads, *sizes[-2:]])


def _seen(values: Values, mask: int, sizes: list[Size]) -> int:
    """Return zero for rows of a mask in which all is minus infinity, else one.

    The exponential of the lowest number is 1.6e-28 when it is scaled first, that of infinity zero.
    """
    builder = values.builder
    near = _multiplied(values, mask, builder.number(NEAR), sizes)
    bounded = builder.unary(Operator.Clamp, near, builder.value(sizes), Range(-1e4, 0.0))
    grown = builder.unary(Operator.Exp, bounded, builder.value(sizes))
    mean = mean_over_last(values, grown, sizes)
    huge = builder.number(torch.finfo(torch.float32).max)
    target = builder.value([*sizes[:-1], 1])
    return builder.binary(Operator.Multiply, mean, huge, target, Range(0.0, 1.0))
