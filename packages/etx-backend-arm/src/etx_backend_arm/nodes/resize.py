# SPDX-License-Identifier: BSD-3-Clause
"""Images made larger or smaller."""

from __future__ import annotations

from math import gcd

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.moves import cut
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, ResizeMode, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
NEAREST = (aten.upsample_nearest2d.vec, aten.upsample_nearest2d.default)
BILINEAR = (aten.upsample_bilinear2d.vec, aten.upsample_bilinear2d.default)
FACTORS = (2, 4, 8)
"""By which an Ethos-U55 upscales."""
MOST = 2**11
"""The largest numerator of a scale."""

Axis = tuple[int, int, int, int]
"""Numerator and denominator of the scale, offset and border."""


def _sizes(node: Node) -> list[tuple[int, int]]:
    given = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    return list(zip(given[2:], node.meta["val"].shape[2:], strict=True))


def nearest_axis(given: int, made: int) -> Axis:
    """Return the scale that takes pixel floor(i * given / made); of whole factors as Vela's."""
    shared = gcd(given, made)
    up, down = made // shared, given // shared
    if down == 1:
        return 2 * up, 2, 1 - up, up - 1
    return 2 * up, 2 * down, -up, up - 2 * down


def bilinear_axis(given: int, made: int, corners: bool) -> Axis:
    """Return the scale of (i + 0.5) * given / made - 0.5, or of the corners kept.

    One pixel is the same everywhere, whatever its scale: RESIZE has none of zero.
    """
    if corners and given > 1 and made > 1:
        most, least = made - 1, given - 1
        shared = gcd(most, least)
        up, down, offset = most // shared, least // shared, 0
    elif corners and given > 1:
        up, down, offset = 1, given, 0
    else:
        shared = gcd(made, given)
        up, down = 2 * made // shared, 2 * given // shared
        offset = (down - up) // 2
    border = (made - 1) * down - (given - 1) * up + offset
    return up, down, offset, border


def of_the_sizes(node: Node, look: Look) -> str | None:
    """It takes the pixels that the sizes say, and the scale's terms are in TOSA's range.

    With a factor that is not the ratio of the sizes, or rounded to float32, they can be others.
    """
    for axis, (given, made) in enumerate(_sizes(node)):
        up, down, *_ = nearest_axis(given, made)
        if up > MOST or down >= 16 * up:
            return f"{node.name} resizes {given} to {made}, beyond the range of RESIZE"
        shape = [1, 1, *(each for each, _ in _sizes(node))]
        line = torch.arange(given, dtype=torch.float64)
        image = line.reshape([-1, 1] if axis == 0 else [-1]).expand(shape)
        pixels = node.target(image, *node.args[1:], **node.kwargs)  # type: ignore[operator]
        row = pixels[0, 0, :, 0] if axis == 0 else pixels[0, 0, 0]
        if row.tolist() != [i * given // made for i in range(made)]:
            return f"{node.name} resizes {given} to {made} by a factor that is not their ratio"
    return None


def small_factor(node: Node, look: Look) -> str | None:
    """The scale's terms are in TOSA's range."""
    corners = arguments(node)[2]
    for given, made in _sizes(node):
        up, down, offset, border = bilinear_axis(given, made, corners)
        if up > MOST or down >= 16 * up or not -up <= offset < 16 * up or abs(border) >= 16 * up:
            return f"{node.name} resizes {given} to {made}, beyond the range of RESIZE"
    return None


def _resize(call: Call, axes: list[Axis], mode: ResizeMode, made: DType) -> str:
    graph = call.graph
    (up_y, down_y, offset_y, border_y), (up_x, down_x, offset_x, border_x) = axes
    operands = [
        call.get(call.activations[0]),
        graph.shape_constant([up_y, down_y, up_x, down_x]),
        graph.shape_constant([offset_y, offset_x]),
        graph.shape_constant([border_y, border_x]),
    ]
    attribute = fbs.ResizeAttribute(mode=mode)
    return graph.operator(Op.RESIZE, attribute, operands, call.fresh("made"), call.shape, made)


for target in NEAREST:

    @lowers(target, when=(integers, static_shape, of_the_sizes), profile=Profile.INT)
    @lowers(target, when=(floating, static_shape, of_the_sizes))
    def nearest(values: Values, node: Node) -> None:
        """Lower to RESIZE of the nearest."""
        call = Call(values, node, "nhwc")
        axes = [nearest_axis(*sizes) for sizes in _sizes(node)]
        made = call.graph.dtype(call.get(call.activations[0]))
        call.moved(_resize(call, axes, ResizeMode.NEAREST, made))


for target in BILINEAR:

    @lowers(target, when=(integers, static_shape, small_factor), profile=Profile.INT)
    @lowers(target, when=(floating, static_shape, small_factor))
    def bilinear(values: Values, node: Node) -> None:
        """Lower to RESIZE, which multiplies integers by both numerators."""
        call = Call(values, node, "nhwc")
        axes = [bilinear_axis(*sizes, call.arguments[2]) for sizes in _sizes(node)]
        if call.step is None:
            call.done(_resize(call, axes, ResizeMode.BILINEAR, call.dtype))
            return
        factor = whole_factor_of(node)
        if values.narrow_tables and factor in FACTORS and not call.arguments[2]:
            _by_nearest(call, factor)
            return
        form = call.form(call.activations[0])
        kind = DType.INT48 if form.is_wide else DType.INT32
        wide = _resize(call, axes, ResizeMode.BILINEAR, kind)
        parts = axes[0][0] * axes[1][0]
        ratio, point = form.scale / parts, form.zero_point * parts
        call.done(_above(call, wide, point), ratio)


def whole_factor_of(node: Node) -> int:
    """Return the whole factor by which both sizes grow, 0 where there is none."""
    factors = {(made // given, made % given) for given, made in _sizes(node)}
    ((factor, rest), *others) = factors
    return 0 if others or rest else factor


def _by_nearest(call: Call, factor: int) -> None:
    """Repeat pixels, then average windows of factor + 1 whose ends count half: the same numbers.

    Pixels at the border are repeated beyond it before. For targets that cannot interpolate.
    """
    graph, step = call.graph, call.step
    assert step is not None
    form, value = call.form(call.activations[0]), call.get(call.activations[0])
    for axis in (1, 2):
        shape = graph.shape(value)
        one = [*shape[:axis], 1, *shape[axis + 1 :]]
        last = [shape[axis] - 1 if i == axis else 0 for i in range(4)]
        first = cut(call, value, [0] * 4, one, f"first_{axis}")
        parts = [first, value, cut(call, value, last, one, f"last_{axis}")]
        shape[axis] += 2
        attribute = fbs.ConcatAttribute(axis=axis)
        value = call.emit(Op.CONCAT, attribute, parts, f"wider_{axis}", shape)
    batch, height, width, channels = graph.shape(value)
    operands = [
        value,
        graph.shape_constant([2 * factor, 2] * 2),
        graph.shape_constant([1 - factor] * 2),
        graph.shape_constant([factor - 1] * 2),
    ]
    shape = [batch, height * factor, width * factor, channels]
    repeat = fbs.ResizeAttribute(mode=ResizeMode.NEAREST)
    value = call.emit(Op.RESIZE, repeat, operands, "repeated", shape)
    begin = [0, factor // 2, factor // 2, 0]
    shape = [batch, shape[1] - factor, shape[2] - factor, channels]
    value = cut(call, value, begin, shape, "within")
    row = torch.tensor([1, *[2] * (factor - 1), 1])
    window = torch.outer(row, row).to(torch.int8)[:, :, None, None].expand(-1, -1, channels, 1)
    values = call.values
    zeros = torch.zeros(channels, dtype=torch.int32)
    depthwise = fbs.DepthwiseConv2dAttribute(
        pad=[0] * 4, stride=[1, 1], dilation=[1, 1], acc_type=DType.INT32
    )
    operands = [
        value,
        values.constant(call.fresh("window"), window),
        values.constant(call.fresh("bias"), zeros),
        graph.zero_point(form.zero_point, DType.INT8),
        graph.zero_point(0, DType.INT8),
    ]
    total = graph.operator(
        Op.DEPTHWISE_CONV2D, depthwise, operands, call.fresh("sum"), call.shape, DType.INT32
    )
    call.done(total, form.scale / (4 * factor**2))


def _above(call: Call, value: str, point: int) -> str:
    """Return int32 less the zero point: RESCALE of int32 takes none."""
    if point == 0:
        return value
    operands = [value, call.number(point, 4)]
    return call.emit(Op.SUB, fbs.SubAttribute(), operands, "above", call.shape)
