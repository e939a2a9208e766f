# SPDX-License-Identifier: BSD-3-Clause
"""Images made larger or smaller."""

from __future__ import annotations

from math import gcd

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.table import Profile, arguments, float32, lowers, quantized, static_shape
from etx_backend_arm.quantized import Look
from etx_backend_arm.tosa import DType, Op, ResizeMode, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
NEAREST = (aten.upsample_nearest2d.vec, aten.upsample_nearest2d.default)
BILINEAR = (aten.upsample_bilinear2d.vec, aten.upsample_bilinear2d.default)
MOST = 2**11
"""The largest numerator of a scale."""

Axis = tuple[int, int, int, int]
"""Numerator and denominator of the scale, offset and border."""


def _sizes(node: Node) -> list[tuple[int, int]]:
    given = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    return list(zip(given[2:], node.meta["val"].shape[2:], strict=True))


def nearest_axis(given: int, made: int) -> Axis:
    """Return the scale that takes pixel floor(i * given / made), for a whole factor."""
    factor = made // given
    return 2 * factor, 2, 1 - factor, factor - 1


def bilinear_axis(given: int, made: int, corners: bool) -> Axis:
    """Return the scale of (i + 0.5) * given / made - 0.5, or of the corners kept."""
    if corners:
        most, least = max(made - 1, 1), given - 1
        shared = gcd(most, least) or 1
        up, down, offset = most // shared, least // shared, 0
        if least == 0:
            up, down = 1, 1
    else:
        shared = gcd(made, given)
        up, down = 2 * made // shared, 2 * given // shared
        offset = (down - up) // 2
    border = (made - 1) * down - (given - 1) * up + offset
    return up, down, offset, border


def whole_factor(node: Node, look: Look) -> str | None:
    """Both sizes grow by a whole factor."""
    if all(made % given == 0 and 2 * made // given <= MOST for given, made in _sizes(node)):
        return None
    return f"{node.name} resizes by {_sizes(node)}, the nearest pixel is of whole factors"


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

    @lowers(target, when=(quantized, static_shape, whole_factor), profile=Profile.INT)
    @lowers(target, when=(float32, static_shape, whole_factor))
    def nearest(values: Values, node: Node) -> None:
        """Lower to RESIZE of the nearest."""
        call = Call(values, node, "nhwc")
        axes = [nearest_axis(*sizes) for sizes in _sizes(node)]
        made = DType.INT8 if call.step else DType.FP32
        call.moved(_resize(call, axes, ResizeMode.NEAREST, made))


for target in BILINEAR:

    @lowers(target, when=(quantized, static_shape, small_factor), profile=Profile.INT)
    @lowers(target, when=(float32, static_shape, small_factor))
    def bilinear(values: Values, node: Node) -> None:
        """Lower to RESIZE, which multiplies integers by both numerators."""
        call = Call(values, node, "nhwc")
        axes = [bilinear_axis(*sizes, call.arguments[2]) for sizes in _sizes(node)]
        if call.step is None:
            call.done(_resize(call, axes, ResizeMode.BILINEAR, DType.FP32))
            return
        form = call.form(call.activations[0])
        wide = _resize(call, axes, ResizeMode.BILINEAR, DType.INT32)
        parts = axes[0][0] * axes[1][0]
        ratio, point = form.scale / parts, form.zero_point * parts
        call.done(_above(call, wide, point), ratio)


def _above(call: Call, value: str, point: int) -> str:
    """Return int32 less the zero point: RESCALE of int32 takes none."""
    if point == 0:
        return value
    operands = [value, call.number(point, 4)]
    return call.emit(Op.SUB, fbs.SubAttribute(), operands, "above", call.shape)
