# SPDX-License-Identifier: BSD-3-Clause
"""Pools of images, and means over their height and width."""

from __future__ import annotations

from math import floor, inf, log2, prod

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.conv import accumulator
from etx_backend_arm.nodes.moves import cut, every, padded
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.nodes.wide import Integers
from etx_backend_arm.nodes.windows import Fit, fit
from etx_backend_arm.quantized import Look, Weight
from etx_backend_arm.tosa import DType, NanPropagationMode, Op, fbs
from etx_backend_arm.values import DTYPES, Values

aten = torch.ops.aten


def _pair(given: list[int]) -> list[int]:
    return list(given) * 2 if len(given) == 1 else list(given)


def _window(node: Node) -> tuple[list[int], list[int], list[int]]:
    """Return the sizes, the strides and the padding of a pool."""
    _, size, stride, padding = arguments(node)[:4]
    return _pair(size), _pair(stride or size), _pair(padding)


def _fit(node: Node) -> Fit:
    """Return the padding, and what to crop, such that the strides divide."""
    size, stride, padding = _window(node)
    source, made = node.args[0].meta["val"], node.meta["val"]  # type: ignore[union-attr]
    return fit(list(source.shape[2:]), size, stride, padding, made.shape[2:])


def plain_pool(node: Node, look: Look) -> str | None:
    """Windows of images, each with something of the image."""
    if node.meta["val"].dim() != 4:
        return f"{node.name} has rank {node.meta['val'].dim()}, a pool of TOSA takes 4"
    (size, _, _), pads = _window(node), _fit(node).pads
    if any(pad >= size[i // 2] for i, pad in enumerate(pads)):
        return f"{node.name} has padding of {pads}, windows of {size} lie outside"
    return None


def _parts(node: Node) -> torch.Tensor:
    """Return what a pool makes of ones: less where padding counts, or the divisor is another."""
    shape = node.args[0].meta["val"].shape[2:]  # type: ignore[union-attr]
    return torch.nn.functional.avg_pool2d(torch.ones(1, *shape), *arguments(node)[1:])[0].double()


def _counts(node: Node) -> torch.Tensor:
    """Return how many elements of the image are in each window."""
    shape = node.args[0].meta["val"].shape[2:]  # type: ignore[union-attr]
    size, stride, padding, up, _, _ = arguments(node)[1:]
    ones = torch.ones(1, *shape)
    return torch.nn.functional.avg_pool2d(ones, size, stride, padding, up, True, 1)[0].double()


def images(node: Node, look: Look) -> str | None:
    """It has the rank of images."""
    rank = node.meta["val"].dim()
    return None if rank == 4 else f"{node.name} has rank {rank}, a pool of TOSA takes 4"


def undilated(node: Node, look: Look) -> str | None:
    """The window has no gaps."""
    if any(each != 1 for each in arguments(node)[4]):
        return f"{node.name} is dilated by {arguments(node)[4]}"
    return None


def over_image(node: Node, look: Look) -> str | None:
    """The mean is over height and width of an image."""
    source, dims = node.args[0].meta["val"], arguments(node)[1]  # type: ignore[union-attr]
    if source.dim() != 4 or dims is None or sorted(d % 4 for d in dims) != [2, 3]:
        return f"{node.name} is not over height and width of an image"
    return None


def _mean(
    values: Values,
    node: Node,
    window: tuple[list[int], list[int]],
    at: Fit,
    parts: torch.Tensor,
    counts: torch.Tensor,
) -> None:
    """Add AVG_POOL2D where one scale is kept, else a sum with one rounding: kernels of ones."""
    step, graph, (size, stride) = values.step(node), values.graph, window
    form = step.forms[0]
    source = at.crop(values, values.get(step.sources[0], "nhwc"), f"{node.name}_part")
    batch, *sizes, channels = graph.shape(source)
    shape = [batch, *at.count(sizes, size, stride), channels]
    stride = at.steps(sizes, size, stride)
    dtype, summed = DTYPES[form.dtype], accumulator(form)
    zero = graph.zero_point(form.zero_point, dtype)
    is_plain = bool((parts == 1).all())
    if is_plain and (form.scale, form.zero_point) == (step.form.scale, step.form.zero_point):
        attribute = fbs.AvgPool2dAttribute(
            kernel=size, stride=stride, pad=at.pads, acc_type=DType.INT32
        )
        name = f"{node.name}_mean"
        mean = graph.operator(Op.AVG_POOL2D, attribute, [source, zero, zero], name, shape, dtype)
        values.requantize(step, mean, [form.scale], "nhwc", form.zero_point)
        return
    shares = parts / counts
    is_even = bool((shares == shares.flatten()[0]).all())
    one = torch.ones(1, dtype=torch.float64)
    total = graph.operator(
        Op.DEPTHWISE_CONV2D,
        fbs.DepthwiseConv2dAttribute(pad=at.pads, stride=stride, dilation=[1, 1], acc_type=summed),
        [
            source,
            values.constant(f"{node.name}_ones", torch.ones(*size, channels, 1, dtype=torch.int8)),
            values.bias(f"{node.name}_bias", None, form, Weight(torch.ones(channels), one, None)),
            zero,
            graph.zero_point(0, DType.INT8),
        ],
        f"{node.name}_sum",
        shape,
        summed,
    )
    if is_even:
        values.requantize(step, total, [form.scale * float(shares.flatten()[0])], "nhwc")
        return
    if form.is_wide:
        made, unit = _wide_shares(Call(values, node, "nhwc"), total, shares, float(parts.max()))
        values.requantize(step, made, [form.scale * unit], "nhwc")
        return
    bits = floor(log2(2**31 / (256 * prod(size) * float(shares.max()))))
    factors = (shares * 2.0**bits).round().to(torch.int32)[None, :, :, None]
    held = values.constant(f"{node.name}_shares", factors)
    mean = graph.multiply(total, held, f"{node.name}_wide", shape)
    values.requantize(step, mean, [form.scale * 2.0**-bits], "nhwc")


def _wide_shares(call: Call, total: str, shares: torch.Tensor, most: float) -> tuple[str, float]:
    """Return sums of int16 times shares, of which ``most`` is left, and what it is multiples of."""
    wide = call.graph.rescale(total, [1.0], (0, 0), call.fresh("as_int32"), DType.INT32)
    bits, kept = (floor(log2(2.0**30 / number)) for number in (float(shares.max()), 2**15 * most))
    factors = (shares * 2.0**bits).round().to(torch.int32)[None, :, :, None]
    held = call.values.constant(call.fresh("shares"), factors)
    return Integers(call).mul(wide, held, bits - kept, "counted"), 2.0**-kept


INT = (integers, static_shape)


@lowers(aten.avg_pool2d.default, when=(*INT, plain_pool), profile=Profile.INT)
def avg_pool2d(values: Values, node: Node) -> None:
    """Lower to AVG_POOL2D, or DEPTHWISE_CONV2D and RESCALE where scales or divisors differ."""
    size, stride, _ = _window(node)
    _mean(values, node, (size, stride), _fit(node), _parts(node), _counts(node))


@lowers(aten.mean.dim, when=(*INT, over_image), profile=Profile.INT)
def mean(values: Values, node: Node) -> None:
    """Lower like a pool with one window of the whole image."""
    size = values.shape(values.step(node).sources[0])[2:]
    one = torch.ones(1, 1, dtype=torch.float64)
    _mean(values, node, (size, [1, 1]), Fit([0] * 4, [0, 0]), one, one * prod(size))


@lowers(aten.max_pool2d.default, when=(*INT, plain_pool, undilated), profile=Profile.INT)
def max_pool2d(values: Values, node: Node) -> None:
    """Lower to MAX_POOL2D; padding is below all values."""
    step, (size, stride, _), at = values.step(node), _window(node), _fit(node)
    source = at.crop(values, values.get(step.sources[0], "nhwc"), f"{node.name}_part")
    attribute = fbs.MaxPool2dAttribute(
        kernel=size,
        stride=at.steps(values.graph.shape(source)[1:3], size, stride),
        pad=at.pads,
        nan_mode=NanPropagationMode.PROPAGATE,
    )
    operands, name = [source], f"{node.name}_largest"
    shape = values.shape(node, "nhwc")
    dtype = DTYPES[step.form.dtype]
    made = values.graph.operator(Op.MAX_POOL2D, attribute, operands, name, shape, dtype)
    values.requantize(step, made, [step.forms[0].scale], "nhwc", step.forms[0].zero_point)


FLOAT = (floating, static_shape)
PLAIN = (*FLOAT, plain_pool)


def _floats(call: Call, value: str, attribute: fbs.AvgPool2dAttribute, shape: list[int]) -> str:
    operands = [value, *[call.graph.zero_point(0, call.graph.dtype(value))] * 2]
    return call.emit(Op.AVG_POOL2D, attribute, operands, "mean", shape)


@lowers(aten.avg_pool2d.default, when=PLAIN)
def avg_pool2d_of_floats(values: Values, node: Node) -> None:
    """Lower to AVG_POOL2D, which leaves padding out, and a factor where that counts."""
    call, (size, stride, _) = Call(values, node, "nhwc"), _window(node)
    at = _fit(node)
    value = at.crop(values, call.get(call.activations[0]), call.fresh("part"))
    stride = at.steps(call.graph.shape(value)[1:3], size, stride)
    attribute = fbs.AvgPool2dAttribute(kernel=size, stride=stride, pad=at.pads, acc_type=DType.FP32)
    mean, parts = _floats(call, value, attribute, call.shape), _parts(node)
    if bool((parts != 1).any()):
        held = parts.to(node.meta["val"].dtype)[None, :, :, None]
        factors = values.constant(call.fresh("parts"), held)
        mean = call.graph.multiply(mean, factors, call.fresh("counted"), call.shape)
    call.done(mean)


@lowers(aten.mean.dim, when=(*FLOAT, over_image))
def mean_of_floats(values: Values, node: Node) -> None:
    """Lower like a pool with one window of the whole image."""
    call = Call(values, node, "nchw")
    value = call.get(call.activations[0], "nhwc")
    batch, height, width, channels = call.graph.shape(value)
    attribute = fbs.AvgPool2dAttribute(
        kernel=[height, width], stride=[1, 1], pad=[0] * 4, acc_type=DType.FP32
    )
    mean = _floats(call, value, attribute, [batch, 1, 1, channels])
    call.done(call.reshape(mean, call.shape, "as"))


@lowers(aten.max_pool2d.default, when=(*PLAIN, undilated))
def max_pool2d_of_floats(values: Values, node: Node) -> None:
    """Lower to MAX_POOL2D."""
    call, (size, stride, _), at = Call(values, node, "nhwc"), _window(node), _fit(node)
    source = at.crop(values, call.get(call.activations[0]), call.fresh("part"))
    attribute = fbs.MaxPool2dAttribute(
        kernel=size,
        stride=at.steps(call.graph.shape(source)[1:3], size, stride),
        pad=at.pads,
        nan_mode=NanPropagationMode.PROPAGATE,
    )
    call.done(call.emit(Op.MAX_POOL2D, attribute, [source], "largest", call.shape))


@lowers(aten.max_pool2d.default, when=(*INT, images), profile=Profile.INT)
@lowers(aten.max_pool2d.default, when=(*FLOAT, images))
def dilated_max_pool2d(values: Values, node: Node) -> None:
    """Lower to MAX_POOL2D of images of which each has every n-th row and column.

    It goes on by one row and column, of what it makes those at the stride are taken.
    """
    call, (size, stride, padding) = Call(values, node, "nhwc"), _window(node)
    gaps, value = _pair(arguments(node)[4]), call.get(call.activations[0])
    graph, count = call.graph, call.shape[1:3]
    batch, *given, channels = graph.shape(value)
    pads, kept, made = [(0, 0)], [batch], []
    for n, k, s, p, gap, c in zip(given, size, stride, padding, gaps, count, strict=True):
        whole = -(-((c - 1) * s + (k - 1) * gap + 1) // gap) * gap
        kept.append(min(n, whole - p))
        pads.append((p, whole - p - kept[-1]))
        made.append(whole // gap)
    value = cut(call, value, [0] * 4, [*kept, channels], "part")
    value = padded(call, value, [*pads, (0, 0)], _least(call, value), "padded")
    value = _apart(call, value, [batch, made[0], gaps[0], made[1], gaps[1], channels], 1)
    value = call.reshape(value, [batch * prod(gaps), *made, channels], "images")
    at = [n - k + 1 for n, k in zip(made, size, strict=True)]
    attribute = fbs.MaxPool2dAttribute(
        kernel=size, stride=[1, 1], pad=[0] * 4, nan_mode=NanPropagationMode.PROPAGATE
    )
    shape = [batch * prod(gaps), *at, channels]
    value = call.emit(Op.MAX_POOL2D, attribute, [value], "largest", shape)
    value = _apart(call, value, [batch, *gaps, *at, channels], -1)
    value = call.reshape(value, [batch, at[0] * gaps[0], at[1] * gaps[1], channels], "image")
    for axis in (1, 2):
        value = every(call, value, axis, 0, count[axis - 1], stride[axis - 1], f"_{axis}")
    call.moved(value)


def _least(call: Call, value: str) -> float:
    """Return what is below all others of a type."""
    (held,) = (dtype for dtype, kind in DTYPES.items() if kind == call.graph.dtype(value))
    return -inf if held.is_floating_point else torch.iinfo(held).min


def _apart(call: Call, value: str, sizes: list[int], way: int) -> str:
    """Put rows and columns behind the batch that are a gap apart, or back."""
    perms = [0, 2, 4, 1, 3, 5] if way > 0 else [0, 3, 1, 4, 2, 5]
    suffix = "apart" if way > 0 else "together"
    value = call.reshape(value, sizes, f"{suffix}_grouped")
    shape, dtype = [sizes[i] for i in perms], call.graph.dtype(value)
    return call.graph.transpose(value, perms, call.fresh(suffix), shape, dtype)
