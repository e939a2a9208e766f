# SPDX-License-Identifier: BSD-3-Clause
"""Two-dimensional convolution: NHWC activations; OHWI weights, or HWCM of depthwise ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from etx_backend_arm.nodes.table import (
    Check,
    Profile,
    arguments,
    floating,
    lowers,
    static_shape,
)
from etx_backend_arm.nodes.table import integers as of_integers
from etx_backend_arm.nodes.windows import Fit, fit
from etx_backend_arm.quantized import Affine, Look, Weight, weight_of
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import DTYPES, PERMS, Values

aten = torch.ops.aten
HWCM = (2, 3, 0, 1)
MOST_GROUPS = 128
NARROW_STRIDE = 3
"""The largest of targets with tables of 8 bits."""


def plain_2d(node: Node, look: Look) -> str | None:
    """Convolutions of images or lines that are not transposed, in few groups or by channels."""
    transposed = arguments(node)[6]
    if node.meta["val"].dim() not in (3, 4):
        return f"{node.name} has rank {node.meta['val'].dim()}, CONV2D takes 4, or 3 as rows of 1"
    if transposed:
        return f"{node.name} is transposed"
    if groups_of(node) > MOST_GROUPS:
        return f"{node.name} has {groups_of(node)} groups, at most {MOST_GROUPS} are taken apart"
    return None


def depthwise(node: Node) -> bool:
    """Tell whether every group has one input channel."""
    source, groups = node.args[0], arguments(node)[8]
    assert isinstance(source, Node)
    return bool(groups > 1 and groups == source.meta["val"].shape[1])


def groups_of(node: Node) -> int:
    """Return how many convolutions it is: TOSA has those in one group and depthwise ones."""
    return 1 if depthwise(node) else int(arguments(node)[8])


def weight_is_constant(node: Node, look: Look) -> str | None:
    """Weight and bias are placeholders of constants."""
    for each in arguments(node)[1:3]:
        if each is not None and look(each) is None:
            return f"{each.name}, a weight of {node.name}, is not a constant"
    return None


def int8_weight_by(axis: int) -> Check:
    """Return a check: the weight is int8 with a scale an output channel, which lie on ``axis``."""

    def int8_weight(node: Node, look: Look) -> str | None:
        _, weight, bias = arguments(node)[:3]
        found = weight_of(weight, look)
        if found is None or found.axis not in (None, axis):
            return f"{weight.name}, the weight of {node.name}, is not int8 with a scale a channel"
        if bias is not None and look(bias) is None:
            return f"{bias.name}, the bias of {node.name}, is not a constant"
        return None

    return int8_weight


int8_weight = int8_weight_by(0)


def _two(given: Sequence[int], first: int) -> list[int]:
    return [first, *given] if len(given) == 1 else list(given)


def window_of(node: Node) -> tuple[list[int], list[int], list[int]]:
    """Return stride, padding and dilation, of lines as those of images of one row."""
    stride, padding, dilation = arguments(node)[3:6]
    return _two(stride, 1), _two(padding, 0), _two(dilation, 1)


def image(values: Values, node: Node, source: Node) -> str:
    """Return an activation as NHWC: lines are images of one row."""
    if node.meta["val"].dim() == 4:
        return values.get(source, "nhwc")
    graph, value = values.graph, values.get(source)
    batch, channels, length = graph.shape(value)
    dtype, name = graph.dtype(value), f"{node.name}_lines"
    lines = graph.transpose(value, [0, 2, 1], name, [batch, length, channels], dtype)
    return graph.reshape(lines, [batch, 1, length, channels], f"{node.name}_image")


def layout_of(node: Node) -> str:
    """Return the layout of what an operator makes."""
    return "nhwc" if node.meta["val"].dim() == 4 else "nlc"


def fit_of(node: Node) -> Fit:
    """Return the padding, and what to crop, such that the strides divide."""
    source, weight = arguments(node)[:2]
    stride, padding, dilation = window_of(node)
    sizes, kernel = (_two(each.meta["val"].shape[2:], 1) for each in (source, weight))
    reach = [dilation[axis] * (kernel[axis] - 1) + 1 for axis in range(2)]
    return fit(list(sizes), reach, stride, padding)


def accumulator(form: Affine) -> DType:
    """Return the type of sums of products with such activations."""
    return DType.INT48 if form.is_wide else DType.INT32


def summed(made: DType) -> DType:
    """Return the type in which what is returned as ``made`` is summed."""
    return DType.FP32 if made in (DType.FP16, DType.BF16) else made


def kernel(node: Node, weight: Tensor) -> Tensor:
    """Return a weight in the order of CONV2D or DEPTHWISE_CONV2D."""
    weight = weight.unsqueeze(2) if weight.dim() == 3 else weight
    if not depthwise(node):
        return weight.permute(PERMS["nhwc"])
    channels = arguments(node)[8]
    return weight.reshape(channels, -1, *weight.shape[2:]).permute(HWCM)


def made_shape(values: Values, node: Node) -> list[int]:
    """Return the sizes of the result as NHWC."""
    if node.meta["val"].dim() == 4:
        return values.shape(node, "nhwc")
    batch, channels, length = values.shape(node)
    return [batch, 1, length, channels]


def is_of_patches(values: Values, node: Node) -> bool:
    """Tell whether windows lie side by side, with a stride that the target has not."""
    (stride, padding, dilation), sizes = window_of(node), node.args[1].meta["val"].shape[2:]  # type: ignore[union-attr]
    return (
        values.narrow_tables
        and not depthwise(node)
        and max(stride) > NARROW_STRIDE
        and (stride, padding, dilation) == (_two(sizes, 1), [0, 0], [1, 1])
    )


def patches(values: Values, node: Node, source: str) -> str:
    """Return windows that lie side by side as channels of one pixel each."""
    graph, (rows, columns) = values.graph, window_of(node)[0]
    source = fit_of(node).crop(values, source, f"{node.name}_part")
    batch, height, width, channels = graph.shape(source)
    down, across, depth = height // rows, width // columns, columns * channels
    name, dtype = f"{node.name}_patches", graph.dtype(source)
    parts = graph.reshape(source, [batch * down, rows, across, depth], f"{name}_parts")
    shape = [batch * down, across, rows, depth]
    turned = graph.transpose(parts, [0, 2, 1, 3], f"{name}_turned", shape, dtype)
    return graph.reshape(turned, [batch, down, across, rows * depth], name)


def emit(values: Values, node: Node, operands: list[str], name: str, made: DType) -> str:
    """Add the operator; ``made`` is the type of what it returns."""
    (stride, _, dilation), at = window_of(node), fit_of(node)
    *shape, channels = made_shape(values, node)
    shape.append(channels // groups_of(node))
    operands[0] = at.crop(values, operands[0], f"{node.name}_part")
    kind: Any = fbs.DepthwiseConv2dAttribute if depthwise(node) else fbs.Conv2dAttribute
    attribute = kind(pad=at.pads, stride=stride, dilation=dilation, acc_type=summed(made))
    op = Op.DEPTHWISE_CONV2D if depthwise(node) else Op.CONV2D
    return values.graph.operator(op, attribute, operands, name, shape, made)


def in_groups(values: Values, node: Node, source: str, one: Callable[[int, str], str]) -> str:
    """Return what ``one`` makes of each group's channels of an NHWC value, joined."""
    groups, graph = groups_of(node), values.graph
    if groups == 1:
        return one(0, source)
    parts, size = [], graph.shape(source)
    size[-1] //= groups
    for i in range(groups):
        begin = graph.shape_constant([0, 0, 0, i * size[-1]])
        operands, name = [source, begin, graph.shape_constant(size)], f"{node.name}_group_{i}"
        dtype, attribute = graph.dtype(source), fbs.SliceAttribute()
        parts.append(one(i, graph.operator(Op.SLICE, attribute, operands, name, size, dtype)))
    name, dtype, shape = f"{node.name}_joined", graph.dtype(parts[0]), made_shape(values, node)
    return graph.operator(Op.CONCAT, fbs.ConcatAttribute(axis=3), parts, name, shape, dtype)


@lowers(aten.convolution.default, when=(floating, static_shape, plain_2d, weight_is_constant))
def convolution(values: Values, node: Node) -> None:
    """Lower with a bias, zero points 0, accumulating in float32."""
    source, weight, bias = arguments(node)[:3]
    filters = values.parameter(weight)
    assert filters is not None
    offset = values.parameter(bias) if bias is not None else filters.new_zeros(filters.shape[0])
    assert offset is not None
    parts = [each.chunk(groups_of(node)) for each in (filters, offset)]

    def one(i: int, part: str) -> str:
        name, dtype = f"{node.name}_{i}", DTYPES[parts[0][i].dtype]
        zero = values.graph.zero_point(0, dtype)
        operands = [
            part,
            values.constant(f"{name}_weight", kernel(node, parts[0][i])),
            values.constant(f"{name}_bias", parts[1][i]),
            zero,
            zero,
        ]
        return emit(values, node, operands, f"{name}_made", dtype)

    made = in_groups(values, node, image(values, node, source), one)
    values.define_in(node, made, layout_of(node))


@lowers(
    aten.convolution.default,
    when=(of_integers, static_shape, plain_2d, int8_weight),
    profile=Profile.INT,
)
def convolution_int8(values: Values, node: Node) -> None:
    """Lower to int8 by int8 with an int32 bias, or int16 with an int48 one, then RESCALE."""
    step, weight = values.step(node), values.weight(node.args[1])
    bias, graph = values.parameter(arguments(node)[2]), values.graph
    form, groups, is_patched = step.forms[0], groups_of(node), is_of_patches(values, node)
    kind = accumulator(form)
    weights = [weight] if groups == 1 else _parts_of(weight, groups)
    biases = [bias] if bias is None or groups == 1 else bias.chunk(groups)

    def total(i: int, source: str) -> str:
        name, part = f"{node.name}_{i}", weights[i]
        integers = kernel(node, part.integers)
        if is_patched:
            source = patches(values, node, source)
            integers = integers.reshape(integers.shape[0], 1, 1, -1)
        filters, zero = values.filters(f"{name}_weight", integers, part)
        operands = [
            source,
            filters,
            values.bias(f"{name}_bias", biases[i % len(biases)], form, part),
            graph.zero_point(form.zero_point, DTYPES[form.dtype]),
            zero,
        ]
        if is_patched:
            attribute = fbs.Conv2dAttribute(
                pad=[0] * 4, stride=[1, 1], dilation=[1, 1], acc_type=kind
            )
            shape = made_shape(values, node)
            return graph.operator(Op.CONV2D, attribute, operands, f"{name}_total", shape, kind)
        return emit(values, node, operands, f"{name}_total", kind)

    def scaled(i: int, source: str) -> str:
        made, own = total(i, source), step.form
        ratios = (form.scale * weights[i].scales / own.scale).tolist()
        name = f"{node.name}_{i}_rescaled"
        return graph.rescale(made, ratios, (0, own.zero_point), name, DTYPES[own.dtype])

    source = image(values, node, step.sources[0])
    if groups == 1:
        scales = (form.scale * weight.scales).tolist()
        values.requantize(step, total(0, source), scales, layout_of(node))
        return
    made = in_groups(values, node, source, scaled)
    own = step.form
    values.requantize(step, made, [own.scale], layout_of(node), own.zero_point)


def _parts_of(weight: Weight, groups: int) -> list[Weight]:
    """Return the weights of groups of output channels."""
    scales = weight.scales.expand(weight.integers.shape[0]).chunk(groups)
    parts = zip(weight.integers.chunk(groups), scales, strict=True)
    return [Weight(part, each, weight.axis, weight.is_narrow) for part, each in parts]
