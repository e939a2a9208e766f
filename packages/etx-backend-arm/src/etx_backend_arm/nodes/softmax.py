# SPDX-License-Identifier: BSD-3-Clause
"""Softmax: tables of 16 bits with interpolation between their entries, sums in int32."""

from __future__ import annotations

from math import ceil, log, log2

import torch
from torch.fx import Node

from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.functions import Floats
from etx_backend_arm.nodes.reduce import reduce
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.nodes.wide import ENTRIES, LARGEST, STEP, Integers, table8, table16
from etx_backend_arm.tosa import DType, Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
MOST_HALVINGS = 31.0
"""With them nothing is left of 22 bits."""
TARGETS = (aten.softmax.int, aten._softmax.default)


def _of_one(call: Call) -> None:
    """Whatever the number is, it is looked up that its share is 1."""
    assert call.step is not None
    share = torch.full((256,), call.step.form.integer(1.0), dtype=torch.int8)
    operands = [call.get(call.activations[0]), call.values.constant(call.fresh("share"), share)]
    call.same(call.emit(Op.TABLE, fbs.TableAttribute(), operands, "shared", call.shape))


@lowers(TARGETS[0], when=(integers, static_shape), profile=Profile.INT)
@lowers(TARGETS[1], when=(integers, static_shape), profile=Profile.INT)
def softmax_integers(values: Values, node: Node) -> None:
    """exp(x - max) over their sum."""
    call = Call(values, node, "nchw")
    is_wide = call.form(call.activations[0]).is_wide
    if call.shape[arguments(node)[1]] == 1 and not is_wide:
        _of_one(call)
    elif values.narrow_tables:
        _by_newton(call, *(_raised_int16(call) if is_wide else _raised_by_bytes(call)))
    else:
        _by_table(call, *(_raised_int16(call) if is_wide else _raised(call)))


def _dim(call: Call) -> int:
    return int(call.arguments[1]) % len(call.shape)


def _raised(call: Call) -> tuple[str, int]:
    """Return exp(x - max) * 2**22 of int8 by a table, and how many bits that are."""
    math, graph = Integers(call), call.graph
    (source,) = call.activations
    form, value = call.form(source), call.get(source)
    wide = call.wide(value, 1.0, form.zero_point, "wide")
    most = reduce(call, Op.REDUCE_MAX, wide, [_dim(call)], "most")
    below = math.sub(wide, most, "below")
    index = graph.rescale(below, [float(STEP)], (0, 0), call.fresh("index"), DType.INT16)
    steps = torch.arange(ENTRIES, dtype=torch.float64) - 256
    exponents = torch.exp((steps * form.scale).clamp(max=0.0)) * LARGEST
    return table16(call, index, exponents, "raised"), 22


def _raised_by_bytes(call: Call) -> tuple[str, int]:
    """Return exp(x - max) * 2**15 of int8 by two tables of bytes, and how many bits that are."""
    math, graph = Integers(call), call.graph
    (source,) = call.activations
    form, value = call.form(source), call.get(source)
    most = reduce(call, Op.REDUCE_MAX, value, [_dim(call)], "most")
    wide = call.wide(value, 1.0, form.zero_point, "wide")
    below = math.sub(wide, call.wide(most, 1.0, form.zero_point, "most_wide"), "below")
    index = graph.rescale(below, [1.0], (0, 127), call.fresh("index"))
    steps = torch.arange(-255, 1, dtype=torch.float64)
    return _two_bytes(math, index, torch.exp(steps * form.scale), 15), 15


def _raised_int16(call: Call) -> tuple[str, int]:
    """Return 2**(w + f) * 2**21.5 with w + f = (x - max) / ln 2, w an integer, and 22 bits.

    2**f is of a table; of bytes it has the upper 8 bits of f, and those below are a factor 1 + g.
    """
    math, graph = Integers(call), call.graph
    (source,) = call.activations
    form, value = call.form(source), call.get(source)
    most = reduce(call, Op.REDUCE_MAX, value, [_dim(call)], "most")
    wide = call.wide(most, 1.0, 0, "most_wide")
    apart = math.sub(wide, call.wide(value, 1.0, 0, "wide"), "apart")
    by = min(form.scale / log(2), MOST_HALVINGS)
    most_apart = int(min(MOST_HALVINGS / by, 2.0**16))
    apart = math.least(apart, math.number(most_apart, apart), "apart_at_most")
    halvings = graph.rescale(apart, [by * 2**15], (0, 0), call.fresh("halvings"), DType.INT32)
    whole = math.right(halvings, math.number(15, apart), "whole")
    rest = math.sub(halvings, math.left(whole, math.number(15, apart), "whole_again"), "rest")
    if call.values.narrow_tables:
        index = graph.rescale(rest, [2.0**-7], (0, 0), call.fresh("rest_above"))
        below = math.sub(rest, call.wide(index, 2.0**7, 0, "rest_again"), "rest_below")
        steps = torch.arange(-128, 128, dtype=torch.float64) / 256
        raised = _two_bytes(math, index, 2 ** (-steps - 0.5), 22)
        factor = graph.rescale(below, [log(2) * 2**8], (0, 0), call.fresh("factor"), DType.INT32)
        raised = math.sub(raised, math.mul(raised, factor, 23, "excess"), "raised_again")
    else:
        index = graph.rescale(rest, [1.0], (0, 0), call.fresh("index"), DType.INT16)
        steps = (torch.arange(ENTRIES, dtype=torch.float64) - 256).clamp(-128, 128) / 256
        raised = table16(call, index, 2 ** (-steps - 0.5) * LARGEST, "raised")
    return math.right(raised, whole, "halved"), 22


def _two_bytes(math: Integers, index: str, results: torch.Tensor, bits: int) -> str:
    """Return results from 0 to 1, multiples of 2**-bits, of which 15 bits are looked up."""
    numbers = (results * 2**15).round().clamp(max=LARGEST)
    upper, lower = (numbers / 256).floor(), numbers % 256
    return math.add(
        table8(math.call, index, upper / 128, bits, "upper"),
        table8(math.call, index, lower / 256, bits - 7, "lower"),
        "raised",
    )


def _sum(call: Call, raised: str, bits: int) -> tuple[str, str, int]:
    """Return numbers, as many bits less as their sum needs in int32, that sum, and the bits."""
    dim = _dim(call)
    spare = max(ceil(log2(call.shape[dim])) + bits - 31, 0)
    if spare:
        raised = call.graph.rescale(raised, [2.0**-spare], (0, 0), call.fresh("less"), DType.INT32)
    return raised, reduce(call, Op.REDUCE_SUM, raised, [dim], "total"), spare


def _by_table(call: Call, raised: str, bits: int) -> None:
    """Multiply by 1/s of a table of the sum's leading 15 bits.

    With e of 22 bits and s their sum, z the zeros above s and r = 2**52 / (s << z - 1):
    e / s = e * r * 2**(z - 1) / 2**52, where e * r / 2**14 and what follows stay in int32.
    """
    math, graph = Integers(call), call.graph
    raised, total, spare = _sum(call, raised, bits)
    zeros = math.leading_zeros(total, "zeros")
    up = math.sub(zeros, math.number(1, zeros), "up")
    leading = math.left(total, up, "leading")
    index = graph.rescale(leading, [2.0**-16], (0, 0), call.fresh("leading_bits"), DType.INT16)
    at = ((torch.arange(ENTRIES, dtype=torch.float64) - 256) * STEP).clamp(min=2**14 - STEP)
    inverses = table16(call, index, (2.0**29 / at).clamp(max=LARGEST), "inverse")
    scaled = math.mul(raised, inverses, 14, "scaled")
    down = math.sub(math.number(32 - bits + spare, zeros), zeros, "down")
    call.done(math.right(scaled, down, "ratio"), 2.0 ** (spare - 29))


def _by_newton(call: Call, raised: str, bits: int) -> None:
    """Multiply by 1/s of a table and a step of Newton's.

    With s the sum of all e, L = s << a with 31 bits, and R = 2**60 / L, made of a first R by
    R * (2 - L * R / 2**60): e / s = e * R * 2**a / 2**60.
    """
    math, graph = Integers(call), call.graph
    raised, total, spare = _sum(call, raised, bits)
    up = math.sub(math.leading_zeros(total, "zeros"), math.number(1, total), "up")
    leading = math.left(total, up, "leading")
    above = math.sub(leading, math.number(3 * 2**29, leading), "above")
    index = graph.rescale(above, [2.0**-22], (0, 0), call.fresh("leading_bits"))
    at = 3 * 2**29 + torch.arange(-128, 128, dtype=torch.float64) * 2**22
    first = table8(call, index, 2**30 / at, 29, "inverse")
    near = math.mul(leading, first, 31, "half_of_one")
    rest = math.sub(math.number(2**29, near), near, "other_half")
    inverse = math.mul(first, rest, 27, "inverse_better")
    scaled = math.mul(raised, inverse, bits - spare - 1, "scaled")
    down = math.sub(math.number(31 - bits + spare, up), up, "down")
    call.done(math.right(scaled, down, "ratio"), 2.0**-30)


@lowers(TARGETS[0], when=(floating, static_shape))
@lowers(TARGETS[1], when=(floating, static_shape))
def softmax(values: Values, node: Node) -> None:
    """Lower to exp(x - max) times the RECIPROCAL of its sum."""
    call = Call(values, node, "nchw")
    floats, value = Floats(call), call.as_float32(call.get(call.activations[0]), "wider")
    dim = arguments(node)[1] % len(call.shape)
    most = reduce(call, Op.REDUCE_MAX, value, [dim], "most")
    below = floats.one(Op.SUB, fbs.SubAttribute(), value, most)
    raised = floats.one(Op.EXP, fbs.ExpAttribute(), below)
    total = reduce(call, Op.REDUCE_SUM, raised, [dim], "total")
    shape = call.graph.shape(total)
    inverse = call.emit(Op.RECIPROCAL, fbs.ReciprocalAttribute(), [total], "inverse", shape)
    call.done(floats.mul(raised, inverse))
