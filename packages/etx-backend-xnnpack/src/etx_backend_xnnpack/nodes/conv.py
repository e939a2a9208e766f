# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions of one and two dimensions, depthwise and transposed ones too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from etx_exir.integer.fine_bias import as_fractions
from etx_exir.ir.constants import Constants
from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack import layout, weights
from etx_backend_xnnpack._generated.xnnpack import Convolution, DataType, Operator
from etx_backend_xnnpack.builder import NONE
from etx_backend_xnnpack.layout import NHWC, NLC, Order
from etx_backend_xnnpack.nodes.scales import adds_products
from etx_backend_xnnpack.nodes.table import Work, constant, lowers, rank, shape_of
from etx_backend_xnnpack.quantized import Dynamic, Weight, argument, dynamic, weight
from etx_backend_xnnpack.values import Result, Values

aten = torch.ops.aten
OF_TENSOR = torch.ops.quantized_decomposed.dequantize_per_tensor.tensor


@dataclass(frozen=True)
class Window:
    """How a kernel moves, (height, width) each."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    adjustment: tuple[int, int]
    groups: int
    transposed: bool


def window(node: Node) -> Window:
    """Return the window of a convolution; one dimension is a width at height one."""
    flat = len(shape_of(node)) == 3
    padding = argument(node, "padding")

    def pair(name: str, missing: int) -> tuple[int, int]:
        given = list(argument(node, name))
        if flat:
            return (missing, given[-1])
        return (given[0], given[-1])

    assert not isinstance(padding, str)
    return Window(
        pair("stride", 1),
        pair("padding", 0),
        pair("dilation", 1),
        pair("output_padding", 0),
        argument(node, "groups"),
        argument(node, "transposed"),
    )


def channel_scales(node: Node, constants: Constants) -> str | None:
    """Require a scale for each output channel of a quantized weight, or one for all."""
    found = weight(argument(node, "weight"), constants.get)
    if found is None or found.scales.dim() == 0:
        return None
    if found.scales.dim() > 1 or found.bits != 8:
        return "its weight is not int8 with a scale a channel"
    return None


def at_run_time(node: Node, constants: Constants) -> str | None:
    """Require a weight of int8 and groups of several inputs where the image is quantized."""
    chain = dynamic(node.args[0])
    if chain is None:
        return None
    if chain.nodes[-1].target is not OF_TENSOR:
        return "its argument has a range for each row, and XNNPACK one for an image"
    found = weight(argument(node, "weight"), constants.get)
    if found is None:
        return "its argument is quantized at run time, but its weight is not"
    if not bool((found.scales > torch.finfo(torch.float32).tiny).all()):
        return "a scale of its weight is not a positive normal number"
    if not _by_output(found, argument(node, "transposed")):
        return "the scales of its weight are those of inputs"
    if depthwise(node):
        return "it is depthwise, and its argument is quantized at run time"
    return None


def _by_output(stored: Weight, transposed: bool) -> bool:
    return stored.scales.dim() == 0 or stored.axis == (1 if transposed else 0)


def small_adjustment(node: Node, constants: Constants) -> str | None:
    """Require an output padding below the stride."""
    if not argument(node, "transposed"):
        return None
    at = window(node)
    if all(each < step for each, step in zip(at.adjustment, at.stride, strict=True)):
        return None
    return f"output_padding is {at.adjustment}; expected less than the stride {at.stride}"


@lowers(
    aten.convolution.default,
    when=[
        rank(3, 4),
        constant("weight"),
        constant("bias"),
        channel_scales,
        at_run_time,
        small_adjustment,
    ],
    work=Work.HEAVY,
    kind="convolution",
    int8=True,
    dynamic=True,
)
def convolution(values: Values, node: Node) -> None:
    """Emit one of XNNPACK's three kinds, in NHWC."""
    source: Any = node.args[0]
    at, flat = window(node), len(values.sizes(node)) == 3
    filters, bias = argument(node, "weight"), argument(node, "bias")
    order = NLC if flat else NHWC
    form, stored = values.quantized(source), values.weight(filters)
    chain = dynamic(source)
    if chain is not None and stored is not None:
        _of_rounded(values, node, chain, stored)
        return
    by_output = stored is not None and _by_output(stored, at.transposed)
    affine = form.affine if form else None
    biases = None if bias is None else values.tensor(bias)
    fits = values.quantizes(node, clamps=True)
    holds = by_output and adds_products(_for_all(stored, at), affine, fits, biases)
    result = values.result(node, clamps=True, quantizes=holds)
    int8 = result.affine
    assert int8 is None or (form is not None and stored is not None)
    number = values.get(source, order, form.affine if form and int8 else None)
    builder = values.builder
    if int8 and form and form.affine and stored:
        integers = kernel(stored.integers, at, depthwise(node))
        scales = _of_all_groups(stored.scales, at)
        if biases is not None and depthwise(node) and integers.numel() == len(biases):
            given = scales.double().expand(len(biases))
            finer = as_fractions(integers, given, biases.double() / form.affine.scale)
            if adds_products(Weight(*finer), form.affine, int8, biases):
                integers, scales = finer
        moved = Weight(integers, scales, integers.dim() - 1 if depthwise(node) else 0)
        weight_id = weights.int8_weight(builder, moved, integers)
        bias_id = weights.int32_bias(builder, biases, form.affine, moved)
    else:
        tensor = values.tensor(filters)
        assert tensor is not None
        weight_id = weights.float32_weight(builder, kernel(tensor, at, depthwise(node)))
        bias_id = NONE if biases is None else weights.float32_weight(builder, biases)
    emit(values, node, at, result, order, (number, weight_id, bias_id))


def _of_rounded(values: Values, node: Node, chain: Dynamic, stored: Weight) -> None:
    """Emit a convolution of images that are quantized one by one, when they come."""
    at, order = window(node), NLC if len(values.sizes(node)) == 3 else NHWC
    builder = values.builder
    builder.dtype = DataType.FP32
    number = values.images(chain.source, order)
    result = values.result(node, clamps=True)
    integers = kernel(stored.integers, at, depthwise(node))
    scales = _of_all_groups(stored.scales, at).expand(integers.shape[0]).contiguous()
    weight_id = weights.int8_weight(builder, Weight(integers, scales), integers)
    bias = argument(node, "bias")
    bias_id = weights.float_bias(builder, None if bias is None else values.tensor(bias))
    emit(values, node, at, result, order, (number, weight_id, bias_id))


def _for_all(stored: Weight | None, at: Window) -> Weight | None:
    """Return the weight with the scales of all outputs."""
    if stored is None:
        return None
    return Weight(stored.integers, _of_all_groups(stored.scales, at), stored.axis, stored.bits)


def _of_all_groups(scales: Tensor, at: Window) -> Tensor:
    """Return scales for all outputs: a transposed weight has those of one group, for each."""
    return scales.repeat(at.groups) if at.transposed and scales.dim() == 1 else scales


def depthwise(node: Node) -> bool:
    """Tell whether each group has one input channel, as XNNPACK has a kind for.

    It has none for one channel that is quantized at run time, which is a convolution like others.
    """
    groups: int = argument(node, "groups")
    if argument(node, "transposed") or shape_of(node.args[0])[1] != groups:
        return False
    return groups > 1 or dynamic(node.args[0]) is None


def kernel(tensor: Tensor, at: Window, is_depthwise: bool) -> Tensor:
    """Return a weight as (outputs, height, width, inputs), or (1, height, width, outputs)."""
    if tensor.dim() == 3:
        tensor = tensor.unsqueeze(2)
    if at.transposed:
        inputs, outputs = tensor.shape[:2]
        split = tensor.reshape(at.groups, inputs // at.groups, outputs, *tensor.shape[2:])
        tensor = split.transpose(1, 2).flatten(0, 1)
        return tensor.permute(NHWC).contiguous()
    if is_depthwise:
        return tensor.permute(1, 2, 3, 0).contiguous()
    return tensor.permute(NHWC).contiguous()


def emit(
    values: Values,
    node: Node,
    at: Window,
    result: Result,
    order: Order,
    ids: tuple[int, int, int],
) -> None:
    """Add the convolution's node; where it is flat, between two reshapes."""
    flat, source = len(order) == 3, ids[0]
    if flat:
        if dynamic(node.args[0]) is None:
            sizes = layout.ordered(values.sizes(node.args[0]), order)
            form = values.quantized(node.args[0]) if result.affine else None
            source = values.shaped(source, [sizes[0], 1, *sizes[1:]], form.affine if form else None)
        outer = layout.ordered(values.sizes(result.node), order)
        target = values.builder.value([outer[0], 1, *outer[1:]], result.affine)
    else:
        target = values.output(result, order)
    shape = shape_of(argument(node, "weight"))
    height, width = (1, shape[2]) if flat else shape[2:]
    inputs, outputs = shape_of(node.args[0])[1], shape_of(node)[1]
    values.builder.node(
        kind_of(node),
        Convolution(
            padding_top=at.padding[0],
            padding_right=at.padding[1],
            padding_bottom=at.padding[0],
            padding_left=at.padding[1],
            kernel_height=height,
            kernel_width=width,
            subsampling_height=at.stride[0],
            subsampling_width=at.stride[1],
            dilation_height=at.dilation[0],
            dilation_width=at.dilation[1],
            group_input_channels=inputs // at.groups,
            group_output_channels=outputs // at.groups,
            groups=at.groups,
            adjustment_height=at.adjustment[0],
            adjustment_width=at.adjustment[1],
            input1_id=source,
            filter_id=ids[1],
            bias_id=ids[2],
            output_id=target,
        ),
        result.range,
    )
    if flat:
        values.shaped(target, outer, result.affine, into=values.output(result, order))


def kind_of(node: Node) -> Operator:
    """Return which of XNNPACK's three kinds a convolution is."""
    if argument(node, "transposed"):
        return Operator.ConvTranspose2d
    return Operator.DepthwiseConv2d if depthwise(node) else Operator.Conv2d
