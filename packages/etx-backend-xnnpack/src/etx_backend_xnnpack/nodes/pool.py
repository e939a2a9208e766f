# SPDX-License-Identifier: BSD-3-Clause
"""Pooling over windows, and softmax."""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import (
    ConstantPad,
    Convolution,
    Operator,
    Pooling2d,
    Unary,
)
from etx_backend_xnnpack.builder import NONE
from etx_backend_xnnpack.layout import NHWC
from etx_backend_xnnpack.nodes.means import KEEP_DIMS, mean_over, reduced
from etx_backend_xnnpack.nodes.table import equals, lowers, rank, shape_of
from etx_backend_xnnpack.quantized import Weight, argument
from etx_backend_xnnpack.values import Result, Values
from etx_backend_xnnpack.weights import int8_weight

aten = torch.ops.aten


def pair(node: Node, name: str, missing: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """Return an argument of one or two numbers."""
    given = argument(node, name)
    given = [given] if isinstance(given, int) else list(given)
    return (given[0], given[-1]) if given else missing


def edges(node: Node, dilation: tuple[int, int] = (1, 1)) -> list[tuple[int, int]]:
    """Return the padding before and behind, of height and of width; rounding up needs more."""
    kernel, padding = pair(node, "kernel_size"), pair(node, "padding")
    stride = pair(node, "stride", kernel)
    found = []
    for i in range(2):
        size, out = shape_of(node.args[0])[2 + i], _results(node)[2 + i]
        behind = padding[i]
        if isinstance(size, int) and isinstance(out, int):
            span = (out - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1
            behind = max(behind, span - size - padding[i])
        found.append((padding[i], behind))
    return found


def _results(node: Node) -> list[Any]:
    value = node.meta["val"]
    return list((value[0] if isinstance(value, (tuple, list)) else value).shape)


def window(node: Node, constants: Constants) -> str | None:
    """Require a window that XNNPACK pools over."""
    kernel = pair(node, "kernel_size")
    if kernel == (1, 1):
        return "a window of one element"
    symbolic = not all(isinstance(size, int) for size in shape_of(node.args[0]))
    if argument(node, "ceil_mode") and symbolic:
        return "it rounds up sizes that are known at run time only"
    return None


def no_gaps(node: Node, constants: Constants) -> str | None:
    """Require steps of at most the window's size."""
    kernel = pair(node, "kernel_size")
    stride = pair(node, "stride", kernel)
    if all(step <= size for step, size in zip(stride, kernel, strict=True)):
        return None
    return f"stride is {stride}; expected at most the window's {kernel}"


def meets_image(node: Node, constants: Constants) -> str | None:
    """Require an image that no gap between two taps may hold, which has no number to pool.

    A size of run time is larger: results of one line are specialized by torch.export.
    """
    sizes = shape_of(node.args[0])[2:]
    for size, gap, before in zip(sizes, pair(node, "dilation"), pair(node, "padding"), strict=True):
        if isinstance(size, int) and before > 0 and size < gap:
            return f"its taps are {gap} apart; a window may miss an image of {size}"
    return None


@lowers(
    aten.max_pool2d_with_indices.default,
    when=[rank(4), window, no_gaps, meets_image],
    only_first=True,
    int8=True,
    kind="pool",
)
@lowers(
    aten.max_pool2d.default,
    when=[rank(4), window, no_gaps, meets_image],
    int8=True,
    whole=True,
    kind="pool",
)
def max_pool(values: Values, node: Node) -> None:
    """Emit a pooling in NHWC."""
    source: Any = node.args[0]
    first = values.first(node)
    form = values.quantized(source)
    result = values.result(first, clamps=True, quantizes=form is not None)
    number = values.get(source, NHWC, result.affine)
    dilation = pair(node, "dilation")
    pool(values, node, Operator.MaxPooling2d, number, result, edges(node, dilation), dilation)


def pool(
    values: Values,
    node: Node,
    kind: Operator,
    number: int,
    result: Result,
    padding: list[tuple[int, int]],
    dilation: tuple[int, int] = (1, 1),
) -> None:
    """Add a pooling node."""
    kernel = pair(node, "kernel_size")
    stride = pair(node, "stride", kernel)
    target = values.output(result, NHWC)
    values.builder.node(
        kind,
        Pooling2d(
            padding_top=padding[0][0],
            padding_right=padding[1][1],
            padding_bottom=padding[0][1],
            padding_left=padding[1][0],
            pooling_height=kernel[0],
            pooling_width=kernel[1],
            stride_height=stride[0],
            stride_width=stride[1],
            dilation_height=dilation[0],
            dilation_width=dilation[1],
            input_id=number,
            output_id=target,
            flags=KEEP_DIMS,
        ),
        result.range,
    )


def tiles(window: tuple[int, int], number: int, target: int) -> Pooling2d:
    """Return a pooling over windows that lie side by side."""
    return Pooling2d(
        pooling_height=window[0],
        pooling_width=window[1],
        stride_height=window[0],
        stride_width=window[1],
        dilation_height=1,
        dilation_width=1,
        input_id=number,
        output_id=target,
        flags=KEEP_DIMS,
    )


def of_pixels(node: Node, constants: Constants) -> str | None:
    """Require rows, columns or both to be reduced, of known sizes and more than one element."""
    dims, sizes = reduced(node), shape_of(node.args[0])
    if not set(dims) <= {2, 3}:
        return f"dimensions {dims} are not those of an image's rows and columns"
    if not all(isinstance(sizes[dim], int) for dim in (2, 3)):
        return "its sizes are known at run time only"
    return "a window of one element" if all(sizes[dim] == 1 for dim in dims) else None


@lowers(aten.amax.default, when=[rank(4), of_pixels], int8=True, kind="pool")
def amax(values: Values, node: Node) -> None:
    """Emit a pooling in NHWC, whose windows have all that is reduced."""
    source: Any = node.args[0]
    dims, form = reduced(node), values.quantized(source)
    result = values.result(node, quantizes=form is not None)
    number = values.get(source, NHWC, result.affine)
    batch, height, width, channels = layout.ordered(values.sizes(source), NHWC)
    window = (height if 2 in dims else 1, width if 3 in dims else 1)
    left = [batch, height // window[0], width // window[1], channels]
    pooled = values.builder.value(left, result.affine)
    values.builder.node(Operator.MaxPooling2d, tiles(window, number, pooled))
    if argument(node, "keepdim"):
        values.define(result.node, pooled, NHWC, result.affine)
        return
    kept = [dim for dim in range(4) if dim not in dims]
    order = tuple(kept.index(dim) for dim in NHWC if dim in kept)
    sizes = layout.ordered(values.sizes(result.node), order)
    values.define(result.node, values.shaped(pooled, sizes, result.affine), order, result.affine)


def whole_windows(node: Node, constants: Constants) -> str | None:
    """Require that no window reaches over the padding, whose elements have another count."""
    padding = pair(node, "padding")
    if edges(node) != [(padding[0], padding[0]), (padding[1], padding[1])]:
        return "a window reaches over the edge when sizes are rounded up"
    return None


@lowers(
    aten.avg_pool2d.default,
    when=[rank(4), window, whole_windows, equals("divisor_override", None)],
    wide=True,
    int8=True,
    kind="pool",
)
def avg_pool(values: Values, node: Node) -> None:
    """Emit a pooling in NHWC, behind zeros that are counted; in int8 a depthwise convolution."""
    source: Any = node.args[0]
    padding = pair(node, "padding")
    counted = padding == (0, 0) or bool(argument(node, "count_include_pad"))
    form = values.quantized(source) if counted else None
    if form is not None and values.quantizes(node, clamps=True) is not None:
        kernel = pair(node, "kernel_size")
        sum_of_window(values, node, kernel, pair(node, "stride", kernel), padding)
        return
    number = values.get(source, NHWC)
    given = [(padding[0], padding[0]), (padding[1], padding[1])]
    if padding != (0, 0) and argument(node, "count_include_pad"):
        sizes = layout.ordered(values.sizes(source), NHWC)
        padded = [sizes[0], sizes[1] + 2 * padding[0], sizes[2] + 2 * padding[1], sizes[3]]
        target = values.builder.value(padded)
        wide = [0, padding[0], padding[1], 0]
        values.builder.node(
            Operator.ConstantPad,
            ConstantPad(
                pre_paddings=wide, post_paddings=list(wide), input_id=number, output_id=target
            ),
        )
        number, given = target, [(0, 0), (0, 0)]
    pool(values, node, Operator.AvgPooling2d, number, values.result(node, clamps=True), given)


def sum_of_window(
    values: Values,
    node: Node,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int] = (0, 0),
) -> None:
    """Add a depthwise convolution whose weights are all one step, of a window's mean."""
    source: Any = node.args[0]
    form, result = values.quantized(source), values.result(node, clamps=True, quantizes=True)
    assert form is not None
    assert form.affine is not None
    number, channels = values.get(source, NHWC, form.affine), values.sizes(source)[1]
    ones = torch.ones((1, *kernel, channels), dtype=torch.int8)
    weight = Weight(ones, torch.tensor(1.0 / math.prod(kernel)))
    filter_id = int8_weight(values.builder, weight, ones)
    target = values.output(result, NHWC)
    values.builder.node(
        Operator.DepthwiseConv2d,
        Convolution(
            padding_top=padding[0],
            padding_right=padding[1],
            padding_bottom=padding[0],
            padding_left=padding[1],
            kernel_height=kernel[0],
            kernel_width=kernel[1],
            subsampling_height=stride[0],
            subsampling_width=stride[1],
            dilation_height=1,
            dilation_width=1,
            group_input_channels=1,
            group_output_channels=1,
            groups=channels,
            input1_id=number,
            filter_id=filter_id,
            bias_id=NONE,
            output_id=target,
        ),
        result.range,
    )


def divides(node: Node, constants: Constants) -> str | None:
    """Require windows of one size."""
    sizes, outer = shape_of(node.args[0])[2:], shape_of(node)[2:]
    if not all(isinstance(size, int) for size in (*sizes, *outer)):
        return "its sizes are known at run time only"
    if any(size % out for size, out in zip(sizes, outer, strict=True)):
        return f"windows of {sizes} into {outer} have different sizes"
    return "nothing to pool" if sizes == outer else None


@lowers(
    aten._adaptive_avg_pool2d.default, when=[rank(4), divides], int8=True, wide=True, kind="pool"
)
@lowers(
    aten.adaptive_avg_pool2d.default,
    when=[rank(4), divides],
    whole=True,
    int8=True,
    wide=True,
    kind="pool",
)
def adaptive_avg_pool(values: Values, node: Node) -> None:
    """Emit a pooling in NHWC; in int8 a mean, or a depthwise convolution."""
    source: Any = node.args[0]
    sizes, outer = values.sizes(source)[2:], values.sizes(node)[2:]
    steps = (sizes[0] // outer[0], sizes[1] // outer[1])
    form = values.quantized(source)
    is_mean = outer == [1, 1]
    int8 = form is not None and values.quantizes(node, clamps=not is_mean) is not None
    if int8 and not is_mean:
        sum_of_window(values, node, steps, steps)
        return
    number = values.get(source, NHWC, form.affine if form and int8 else None)
    if is_mean:
        given = layout.ordered([*values.sizes(source)], NHWC)
        result = values.result(node, quantizes=int8)
        at = (form.affine if form and int8 else None, result.affine)
        pooled = mean_over(values, number, given, 1, 3, at)
        values.define(result.node, pooled, NHWC, result.affine)
        return
    result = values.result(node, clamps=True)
    target = values.output(result, NHWC)
    values.builder.node(Operator.AvgPooling2d, tiles(steps, number, target), result.range)


def not_half(node: Node, constants: Constants) -> str | None:
    """Require that nothing is converted."""
    return "it converts its argument" if node.args[2] else None


@lowers(aten._softmax.default, when=[not_half], kind="softmax")
def softmax(values: Values, node: Node) -> None:
    """Emit a node with its dimension innermost."""
    source, dim = node.args[:2]
    sizes = values.sizes(source)
    order = values.last(source, dim % len(sizes))  # type: ignore[arg-type, operator]
    number = values.get(source, order)
    target = values.output(values.result(node), order)
    values.builder.node(Operator.Softmax, Unary(input_id=number, output_id=target))
