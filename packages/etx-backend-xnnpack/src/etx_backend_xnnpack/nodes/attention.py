# SPDX-License-Identifier: BSD-3-Clause
"""Attention: two products and a softmax between them."""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.analysis.value_range import is_finite
from etx_exir.ir.constants import Constants
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import ConstantPad, FullyConnected, Operator
from etx_backend_xnnpack.builder import Range
from etx_backend_xnnpack.layout import Size, plain
from etx_backend_xnnpack.nodes.attended import ATTENTION, attended, has_open_end, mask_parts
from etx_backend_xnnpack.nodes.matmul import TRANSPOSE_B, product
from etx_backend_xnnpack.nodes.means import mean_over_last, unknown
from etx_backend_xnnpack.nodes.shape import cut, join, joined
from etx_backend_xnnpack.nodes.table import Work, lowers, shape_of
from etx_backend_xnnpack.quantized import argument
from etx_backend_xnnpack.values import Stored, Values

MOST_MASK_BYTES = 1 << 24
NEAR = 2.0**-122
SINK = Range(-2e30, -1e30)


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
    if heads[0] != heads[1] and unknown([batches[0], shape_of(query)[2]]) > 1:
        return "grouped heads of a batch and of rows that are known at run time only"
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
        if len(sizes) > 2 and sizes[-3] != 1 and unknown([rows, columns]) > 1:
            return "a mask of each of its grouped heads, whose sizes are known at run time only"
    return None


@lowers(ATTENTION, when=[attention_form], work=Work.HEAVY, whole=True, wide=True, kind="attention")
def attention(values: Values, node: Node) -> None:
    """Emit two products and a softmax between them."""
    query, key = node.args[:2]
    batch, heads, rows, width = values.sizes(query)
    shared, columns = values.sizes(key)[1:3]
    groups = heads // shared
    given = argument(node, "scale")
    factor = values.builder.number(given if given else 1 / math.sqrt(width))
    scaled = _multiplied(values, values.get(query), factor, values.sizes(query))
    lines = [batch, shared, groups * rows, columns]
    if groups > 1:
        scaled = values.shaped(scaled, [batch, shared, groups * rows, width])
    emit = _with_open_end if has_open_end(node) else _with_known_end
    values.define(node, emit(values, node, scaled, lines), plain(4))


def _apart(values: Values, node: Node, mixed: int, groups: int) -> int:
    """Return results with a dimension of all heads."""
    return values.shaped(mixed, values.sizes(node)) if groups > 1 else mixed


def _with_known_end(values: Values, node: Node, query: int, lines: list[Size]) -> int:
    """Emit attention to keys that are one value, or two of known length."""
    builder, (_, key, value) = values.builder, node.args[:3]
    _, heads, rows, outer = values.sizes(node)
    groups = heads // lines[1]
    scores = _scores(values, query, attended(key), lines)
    splits = groups > 1 and unknown(lines) <= 1
    apart = [*lines[:2], groups, rows, lines[3]] if splits else lines
    mask, hides = _mask(values, node, groups, splits)
    if mask is not None:
        if splits:
            scores = values.shaped(scores, apart)
        masked = builder.binary(Operator.Add, scores, mask, builder.value(apart))
        scores = values.shaped(masked, lines) if splits else masked
    given: Any = argument(node, "attn_mask")
    in_parts = len(attended(value)) > 1
    has_sink = hides and (in_parts or unknown(values.sizes(given)) > 1)
    if has_sink:
        scores, lines = _with_sink(values, scores, lines)
    weights = builder.unary(Operator.Softmax, scores, builder.value(lines))
    if has_sink and not in_parts:
        mixed = product(values, weights, _behind_zeros(values, value), [*lines[:3], outer])
    else:
        mixed = _mixed(values, weights, lines, attended(value), outer, int(has_sink))
    mixed = _apart(values, node, mixed, groups)
    if not hides or has_sink:
        return mixed
    seen = _seen(values, values.get(given), values.sizes(given))
    return _multiplied(values, mixed, seen, values.sizes(node))


def _behind_zeros(values: Values, node: Any) -> int:
    """Return values of attention behind a row of zeros, for the sink."""
    sizes = values.sizes(node)
    target = values.builder.value([*sizes[:2], sizes[2] + 1, sizes[3]])
    zeros = ConstantPad(
        pre_paddings=[0, 0, 1, 0],
        post_paddings=[0] * 4,
        padding_value=0.0,
        input_id=values.get(node),
        output_id=target,
    )
    values.builder.node(Operator.ConstantPad, zeros)
    return target


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


def _mask(values: Values, node: Node, groups: int, splits: bool) -> tuple[int | None, bool]:
    """Return what is added to the scores, and whether it may hide all of a row.

    `splits`: the scores have a dimension of the heads that share keys.
    """
    rows, columns = values.sizes(node.args[0])[2], values.sizes(node.args[1])[2]
    if argument(node, "is_causal"):
        hidden = torch.full((rows, columns), -math.inf).triu(1)
        return values.builder.constant(hidden), False
    mask = argument(node, "attn_mask")
    if mask is None:
        return None, False
    number, hides = _finite(values, mask)
    return _grouped(values, number, values.sizes(mask), groups, splits), hides


def _finite(values: Values, mask: Node) -> tuple[int, bool]:
    """Return a mask with the lowest number instead of infinity, and whether it may hide a row."""
    number, builder = values.get(mask), values.builder
    if is_finite(mask, values.constants):
        return number, False
    low = builder.number(torch.finfo(torch.float32).min)
    return builder.binary(Operator.Maximum, number, low, builder.value(values.sizes(mask))), True


def _with_open_end(values: Values, node: Node, query: int, lines: list[Size]) -> int:
    """Emit attention to a known number of keys and an unknown one behind: no slice takes these.

    What the first ones leave of a row's weight is shared by a softmax of the others.
    """
    builder, (_, key, value) = values.builder, node.args[:3]
    groups = values.sizes(node)[1] // lines[1]
    masks, hides = mask_parts(node), False
    scores = []
    for index, part in enumerate(attended(key)):
        some = [*lines[:3], values.sizes(part)[2]]
        number = product(values, query, values.get(part), some, TRANSPOSE_B)
        if masks:
            mask, infinite = _finite(values, masks[index])
            mask = _grouped(values, mask, values.sizes(masks[index]), groups, splits=False)
            number = builder.binary(Operator.Add, number, mask, builder.value(some))
            hides = hides or infinite
        scores.append(number)
    first, last = attended(value)
    own = [*lines[:3], values.sizes(last)[2]]
    outer = [*lines[:3], values.sizes(value)[3]]
    weights = builder.unary(Operator.Softmax, scores[1], builder.value(own))
    behind = product(values, weights, values.get(last), outer)
    both = join(values, scores, 3, builder.value(lines))
    if hides:
        both, lines = _with_sink(values, both, lines)
    weights = builder.unary(Operator.Softmax, both, builder.value(lines))
    length = values.sizes(first)[2]
    known = cut(values, Stored(weights, plain(4)), lines, 3, int(hides), length)
    before = product(values, known, values.get(first), outer)
    if hides:
        known = cut(values, Stored(weights, plain(4)), lines, 3, 0, length + 1)
    behind = _multiplied(values, behind, _rest(values, known, lines, length + hides), outer)
    mixed = builder.binary(Operator.Add, before, behind, builder.value(outer))
    return _apart(values, node, mixed, groups)


def _rest(values: Values, weights: int, lines: list[Size], length: int) -> int:
    """Return one less the sum of a row."""
    target = values.builder.value([*lines[:3], 1])
    operator = FullyConnected(
        input1_id=weights,
        filter_id=values.builder.constant(torch.full((1, length), -1.0), packed=True),
        bias_id=values.builder.constant(torch.ones(1), packed=True),
        output_id=target,
    )
    values.builder.node(Operator.FullyConnected, operator, Range(0.0, 1.0))
    return target


def _with_sink(values: Values, scores: int, lines: list[Size]) -> tuple[int, list[Size]]:
    """Add a first column that takes all weight of rows in which all is hidden, and else none.

    Its score is above the lowest number, with which places are hidden, and below all others.
    """
    first = cut(values, Stored(scores, plain(4)), lines, 3, 0, 1)
    sink = values.builder.value([*lines[:3], 1])
    values.builder.unary(Operator.Clamp, first, sink, SINK)
    wide = [*lines[:3], lines[3] + 1]
    return join(values, [sink, scores], 3, values.builder.value(wide)), wide


def _grouped(values: Values, mask: int, sizes: list[Size], groups: int, splits: bool) -> int:
    """Give a mask the dimension of the heads that share keys, or its rows once for each of them."""
    if groups == 1:
        return mask
    if not splits:
        return (
            mask
            if len(sizes) < 2 or layout.is_one(sizes[-2])
            else _repeated(values, mask, sizes, groups)
        )
    if len(sizes) < 3:
        return mask
    heads = [1, 1] if layout.is_one(sizes[-3]) else [sizes[-3] // groups, groups]
    return values.shaped(mask, [*sizes[:-3], *heads, *sizes[-2:]])


def _repeated(values: Values, mask: int, sizes: list[Size], times: int) -> int:
    axis = len(sizes) - 2
    wide = [*sizes[:axis], times * sizes[axis], sizes[-1]]
    return joined(values, [mask] * times, [sizes[axis]] * times, axis, wide)


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
