# SPDX-License-Identifier: BSD-3-Clause
"""Normalization of rows, and of groups of channels."""

from __future__ import annotations

import operator
from math import ceil, floor, log2, prod, sqrt

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.reduce import reduce
from etx_backend_arm.nodes.table import (
    FLOATS,
    Check,
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    picked_only,
    static_shape,
)
from etx_backend_arm.nodes.wide import ENTRIES, LARGEST, STEP, Integers, table8, table16
from etx_backend_arm.quantized import Look, split_of
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
LAYER_NORM = aten.native_layer_norm.default
GROUP_NORM = aten.native_group_norm.default
BATCH_NORM = aten._native_batch_norm_legit_no_training.default


def first_of(norm: object) -> Check:
    """Return a check: it picks what is normalized."""

    def check(node: Node, look: Look) -> str | None:
        source = split_of(node)
        if source is None or source.target is not norm or node.args[1] != 0:
            return f"{node.name} picks a result of {node.args[0]}, which has no lowering"
        return None

    return check


def only_normalized(node: Node, look: Look) -> str | None:
    """Mean and deviation are not read."""
    if all(each.args[1] == 0 for each in node.users):
        return None
    return f"the mean or deviation of {node.name} is read"


def constants_of_channels(node: Node, look: Look) -> str | None:
    """Mean, variance, weight and bias of a batch norm are constants."""
    norm = split_of(node) or node
    for each in arguments(norm)[1:5]:
        if each is not None and look(each) is None:
            return f"{each.name}, a parameter of {norm.name}, is not a constant"
    return None


def of_channels(node: Node, look: Look) -> str | None:
    """What is normalized is of floats, and of a shape that is known."""
    norm = split_of(node) or node
    held = norm.args[0].meta["val"]  # type: ignore[union-attr]
    if held.dtype not in FLOATS:
        return f"{norm.name} is of {held.dtype}, the lowering takes {', '.join(map(str, FLOATS))}"
    if any(not isinstance(size, int) for size in held.shape) or not held.numel():
        return f"{norm.name} is of a shape {tuple(held.shape)} that is dynamic or empty"
    return None


@lowers(BATCH_NORM, when=(of_channels, picked_only, only_normalized, constants_of_channels))
@lowers(GROUP_NORM, when=(floating, static_shape, picked_only, only_normalized))
@lowers(LAYER_NORM, when=(floating, static_shape, picked_only, only_normalized))
def whole(values: Values, node: Node) -> None:
    """Lower to nothing: what picks its result is lowered."""


@lowers(operator.getitem, when=(floating, static_shape, first_of(LAYER_NORM)))
def layer_norm(values: Values, node: Node) -> None:
    """(x - mean) * rsqrt(variance + eps), where means are CONV2D by one filter of 1 / N."""
    norm = split_of(node)
    assert norm is not None
    call = Call(values, node, "nchw")
    source, normal, weight, bias, eps = arguments(norm)
    count = prod(normal)
    made = _normalized(call, call.get(source), count, float(eps))
    made = _with_parameters(call, made, [1, 1, 1, count], weight, bias)
    call.done(call.reshape(made, call.shape, "as"))


@lowers(operator.getitem, when=(floating, static_shape, first_of(GROUP_NORM)))
def group_norm(values: Values, node: Node) -> None:
    """Normalize each group of channels as a row; weight and bias are of channels."""
    norm = split_of(node)
    assert norm is not None
    call = Call(values, node, "nchw")
    source, weight, bias, _, channels, _, groups, eps = arguments(norm)
    count = prod(call.shape[1:]) // groups
    made = _normalized(call, call.get(source), count, float(eps))
    made = call.reshape(made, call.shape, "as_given")
    shape = [1, channels, *[1] * (len(call.shape) - 2)]
    call.done(_with_parameters(call, made, shape, weight, bias))


@lowers(operator.getitem, when=(first_of(BATCH_NORM), of_channels, constants_of_channels))
def batch_norm(values: Values, node: Node) -> None:
    """x * a + b, with a = weight / sqrt(variance + eps) and b = bias - mean * a of a channel."""
    norm = split_of(node)
    assert norm is not None
    call = Call(values, node)
    source, *parameters = arguments(norm)[:5]
    weight, bias, mean, variance = (values.parameter(each) for each in parameters)
    assert mean is not None
    assert variance is not None
    factor = (variance.detach().double() + float(arguments(norm)[-1])).rsqrt()
    factor = factor if weight is None else factor * weight.detach().double()
    offset = -mean.detach().double() * factor
    offset = offset if bias is None else offset + bias.detach().double()
    shape = [1] * len(call.shape)
    shape[call.dim(1)] = -1
    floats = Floats(call, call.shape)
    made = call.as_float32(call.get(source), "wider")
    for kind, each in (("factor", factor), ("offset", offset)):
        held = values.constant(call.fresh(kind), each.float().reshape(shape))
        made = floats.mul(made, held) if kind == "factor" else floats.add(made, held)
    call.done(made)


def _normalized(call: Call, value: str, count: int, eps: float) -> str:
    """Return rows of ``count`` elements, (1, rows, 1, count), each normalized."""
    shape = [1, prod(call.shape) // count, 1, count]
    rows = call.as_float32(call.reshape(value, shape, "rows"), "wider")
    floats, few = Floats(call, shape), Floats(call, [*shape[:3], 1], "of_row")
    centred = floats.one(Op.SUB, fbs.SubAttribute(), rows, _mean(call, rows, 0.0, "mean"))
    spread = _mean(call, floats.mul(centred, centred), eps, "spread")
    return floats.mul(centred, few.one(Op.RSQRT, fbs.RsqrtAttribute(), spread))


def _with_parameters(
    call: Call, value: str, shape: list[int], weight: Node | None, bias: Node | None
) -> str:
    """Multiply and add float parameters in this shape."""
    floats = Floats(call, call.graph.shape(value), "of_parameters")
    for kind, each, idle in (("weight", weight, 1), ("bias", bias, 0)):
        held = None if each is None else call.values.parameter(each)
        if each is None or (held is not None and bool((held == idle).all())):
            continue
        operand = call.as_float32(call.reshape(call.get(each), shape, kind), f"{kind}_wider")
        value = floats.mul(value, operand) if kind == "weight" else floats.add(value, operand)
    return value


def _mean(call: Call, rows: str, more: float, suffix: str) -> str:
    """Return the mean of each row, and ``more``."""
    *sizes, count = call.graph.shape(rows)
    zero = call.graph.zero_point(0, DType.FP32)
    share = torch.full((1, 1, 1, count), 1 / count)
    operands = [
        rows,
        call.values.constant(f"share_{count}", share),
        call.values.constant(f"more_{more}", torch.tensor([more])),
        zero,
        zero,
    ]
    attribute = fbs.Conv2dAttribute(
        pad=[0] * 4, stride=[1, 1], dilation=[1, 1], acc_type=DType.FP32
    )
    return call.emit(Op.CONV2D, attribute, operands, suffix, [*sizes, 1])


MOST_BELOW = 510
"""How far an int8 value and a mean of such can lie apart, and a half."""
MOST_ELEMENTS = 2**13


def constants_only(node: Node, look: Look) -> str | None:
    """Weight and bias are constants, rows are short enough for int32."""
    _, normal, weight, bias = arguments(node)[:4]
    if prod(normal) > MOST_ELEMENTS:
        return f"{node.name} is over {prod(normal)} elements, at most {MOST_ELEMENTS} fit int32"
    for each in (weight, bias):
        if each is not None and look(each) is None:
            return f"{each.name}, a parameter of {node.name}, is not a constant"
    return None


@lowers(
    aten.layer_norm.default,
    when=(integers, static_shape, constants_only),
    profile=Profile.INT,
)
def layer_norm_integers(values: Values, node: Node) -> None:
    """Lower by the formula of the type."""
    is_wide = values.step(node).form.is_wide
    (layer_norm_int16 if is_wide else layer_norm_int8)(values, node)


def layer_norm_int8(values: Values, node: Node) -> None:
    """c / sqrt(V) with c = N * x - sum(x) and V = sum(c * c), in int32 and a table of 1/sqrt.

    With V << a in its leading 31 bits, a even, and r = K * 2**15 / sqrt(V << a) of the table:
    (x - mean) / deviation = c * r * 2**(a / 2) * sqrt(N) / (K * 2**15).
    """
    call = Call(values, node, "nchw")
    math = Integers(call)
    _, normal, weight, bias, eps = arguments(node)[:5]
    form, count = call.form(call.activations[0]), prod(normal)
    centred = _centred(math, count)
    offset = float(eps) * count**3 / form.scale**2
    bits = ceil(max(log2(count) + 2 * log2(MOST_BELOW * count), log2(max(offset, 1.0))))
    least, room = max(bits - 30, 0), max(30 - bits, 0)
    power = _power(math, centred, least, "power")
    if room:
        power = math.left(power, math.number(room, power), "power_in_room")
    added = max(round(offset * 2.0 ** (room - least)), 1)
    power = math.add(power, math.number(added, power), "not_zero")
    inverse, half, factor, extra = _inverse_root(math, power)
    shift = max(ceil(log2(MOST_BELOW * count)) + 22 - 30, 0) + extra
    scaled = math.mul(centred, inverse, shift, "scaled")
    made = math.right(scaled, math.sub(math.number(15, half), half, "down"), "normal")
    unit = 2.0**shift * sqrt(count) * 2 ** ((room - least) / 2) / factor
    parameters = values.parameter(weight), values.parameter(bias)
    made, unit = _affine(math, made, unit, *parameters, sqrt(count))
    call.done(call.reshape(made, call.shape, "as"), unit)


def layer_norm_int16(values: Values, node: Node) -> None:
    """As of int8, but a row's c is shifted to the left by b bits before V is summed up.

    A first V, without them, says how many are free: c << b stays within 2**30, V without ``less``
    bits, too. They are at most those with which eps, shifted as V is, stays within 2**29.
    """
    call = Call(values, node, "nchw")
    math = Integers(call)
    _, normal, weight, bias, eps = arguments(node)[:5]
    form, count = call.form(call.activations[0]), prod(normal)
    centred, of_count = _centred(math, count), ceil(log2(count))
    offset = max(float(eps) * count**3 / form.scale**2, 2.0**-100)
    less = max(28 + of_count, ceil(log2(offset)) - 29)
    most = min(floor((29 + less - log2(offset)) / 2), (30 - of_count) // 2)
    zeros = math.leading_zeros(_power(math, centred, 28 + of_count, "coarse"), "free")
    twice = math.sub(zeros, math.number(max(3, of_count) + 1, zeros), "spare_twice")
    spare = math.right(twice, math.number(1, zeros), "spare")
    spare = math.most(spare, math.number(0, zeros), "spare_or_none")
    bits = math.least(spare, math.number(most, zeros), "bits")
    centred = math.left(centred, bits, "in_front")
    rest = math.sub(math.number(2 * most, bits), math.add(bits, bits, "bits_twice"), "rest")
    added = max(round(offset * 2.0 ** (2 * most - less)), 1)
    added_here = math.right(math.number(added, rest), rest, "eps")
    power = math.add(_power(math, centred, less, "power"), added_here, "not_zero")
    inverse, half, factor, extra = _inverse_root(math, power)
    shift = 22 + of_count // 2 + extra
    made = math.left(math.mul(centred, inverse, shift, "scaled"), half, "normal")
    unit = 2.0 ** (shift - 15 - less / 2) * sqrt(count) / factor
    parameters = values.parameter(weight), values.parameter(bias)
    made, unit = _affine(math, made, unit, *parameters, sqrt(count))
    call.done(call.reshape(made, call.shape, "as"), unit)


def _centred(math: Integers, count: int) -> str:
    """Return rows of ``count`` elements, each element ``count`` times less the row's sum."""
    call = math.call
    (source,) = call.activations
    value = call.reshape(call.get(source), [prod(call.shape) // count, count], "rows")
    wide = call.wide(value, 1.0, call.form(source).zero_point, "wide")
    total = reduce(call, Op.REDUCE_SUM, wide, [1], "sum")
    return math.sub(math.mul(wide, math.number(count, wide), 0, "times"), total, "centred")


def _power(math: Integers, centred: str, less: int, suffix: str) -> str:
    """Return the sum of squares of each row, of which ``less`` bits are dropped."""
    squares = math.mul(centred, centred, less, f"{suffix}_squares")
    return reduce(math.call, Op.REDUCE_SUM, squares, [1], suffix)


def _inverse_root(math: Integers, power: str) -> tuple[str, str, float, int]:
    """Return r, a / 2, K and bits of r above 22: r = K * 2**15 / sqrt(power << a)."""
    half = math.right(
        math.sub(math.leading_zeros(power, "zeros"), math.number(2, power), "even"),
        math.number(1, power),
        "half",
    )
    leading = math.left(power, math.add(half, half, "up"), "leading")
    inverse, factor, extra = _inverse_of_leading(math, leading)
    return inverse, half, factor, extra


def _inverse_of_leading(math: Integers, leading: str) -> tuple[str, float, int]:
    """Return factor * 2**15 / sqrt(of 2**29 to 2**31), the factor, and bits above 22."""
    call, graph = math.call, math.call.graph
    if not call.values.narrow_tables:
        name = call.fresh("leading_bits")
        index = graph.rescale(leading, [2.0**-16], (0, 0), name, DType.INT16)
        at = ((torch.arange(ENTRIES, dtype=torch.float64) - 256) * STEP).clamp(min=2**13 - STEP)
        factor = LARGEST * 2**6.5
        entries = (factor / at.sqrt()).clamp(max=LARGEST)
        return table16(call, index, entries, "inverse"), factor, 0
    index = graph.rescale(leading, [2.0**-23], (0, -128), call.fresh("leading_bits"))
    at = (torch.arange(256, dtype=torch.float64) / 64).clamp(min=1)
    first = table8(call, index, at.rsqrt(), 29, "inverse")
    square = math.mul(first, first, 28, "inverse_square")
    near = math.mul(leading, square, 30, "half_of_one")
    rest = math.sub(math.number(3 * 2**29, near), near, "about_one")
    return math.mul(first, rest, 29, "inverse_better"), 2**29.5, 8


def _affine(
    math: Integers,
    value: str,
    unit: float,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    reach: float,
) -> tuple[str, float]:
    """Multiply and add along the last dimension: integers, and what they are multiples of.

    ``reach`` is the greatest value, which stays within 2**30 multiples with what is added.
    """
    more = 0.0 if bias is None else float(bias.detach().abs().max())
    if weight is None and reach + more > unit * 2**30:
        weight = torch.ones(1)
    if weight is not None:
        weight = weight.detach().double()
        greatest = max(float(weight.abs().max()), 2.0**-20)
        step = greatest / 2**15
        shift = max(ceil(log2((reach * greatest + more) / (unit * step))) - 30, 10)
        numbers = math.row(weight / step, value, "weight")
        value, unit = math.mul(value, numbers, shift, "weighted"), unit * step * 2**shift
    if bias is not None:
        value = math.add(value, math.row(bias.detach().double() / unit, value, "bias"), "biased")
    return value, unit
