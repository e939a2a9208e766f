# SPDX-License-Identifier: BSD-3-Clause
"""Sums of all that lies before in a dimension, halves of matrices, every n-th of other values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.fx import Node

from etx_backend_arm.nodes.arithmetic import both_integer
from etx_backend_arm.nodes.call import Call
from etx_backend_arm.nodes.moves import as_they_are, cut, in_both, padded
from etx_backend_arm.nodes.reduce import MOST, MOST_WIDE
from etx_backend_arm.nodes.table import (
    Profile,
    arguments,
    floating,
    integers,
    lowers,
    static_shape,
)
from etx_backend_arm.quantized import Look, find_step
from etx_backend_arm.tosa import Op, fbs
from etx_backend_arm.values import Values

aten = torch.ops.aten
TRIANGLES: dict[object, Callable[..., torch.Tensor]] = {
    aten.tril.default: torch.tril,
    aten.triu.default: torch.triu,
}


def short(node: Node, look: Look) -> str | None:
    """The sum of all elements stays in int32."""
    source, dim = arguments(node)[:2]
    shape, found = source.meta["val"].shape, find_step(node, look)
    most = MOST_WIDE if not isinstance(found, str) and found.form.is_wide else MOST
    if not shape or shape[dim] <= most:
        return None
    return f"{node.name} adds {shape[dim]} elements, at most {most} fit int32"


@lowers(aten.cumsum.default, when=(integers, static_shape, short), profile=Profile.INT)
@lowers(aten.cumsum.default, when=(floating, static_shape))
def summed(values: Values, node: Node) -> None:
    """Add what lies 1, 2, 4 and so on before: the logarithm of the length in ADDs."""
    call = Call(values, node, "nchw")
    source, dim = arguments(node)[:2]
    value, form = call.get(source), call.form(source) if call.step else None
    if form is not None:
        value = call.wide(value, 1.0, form.zero_point, "wide")
    else:
        value = call.as_float32(value, "wider")
    shape, by = call.graph.shape(value), 1
    at = dim % max(len(shape), 1)
    while shape and by < shape[at]:
        size = [*shape[:at], shape[at] - by, *shape[at + 1 :]]
        part = cut(call, value, [0] * len(shape), size, f"before_{by}")
        pads = [(by if i == at else 0, 0) for i in range(len(shape))]
        moved = padded(call, part, pads, 0, f"moved_{by}")
        value = call.emit(Op.ADD, fbs.AddAttribute(), [value, moved], f"sum_{by}", shape)
        by *= 2
    call.done(value, form.scale if form else None)


@in_both(*TRIANGLES)
def half(values: Values, node: Node) -> None:
    """Lower to SELECT between the matrix and zeros."""
    call = Call(values, node, "nchw")
    shape = call.shape
    held = TRIANGLES[node.target](torch.ones(shape[-2:]), arguments(node)[1]).bool()
    mask = values.constant(call.fresh("half"), held.reshape([1] * (len(shape) - 2) + shape[-2:]))
    value = call.aligned(call.activations[0])
    dtype = call.graph.dtype(value)
    zero = values.number(call.step.form.zero_point if call.step else 0, len(shape), dtype)
    given, name = [mask, value, zero], call.fresh("rest")
    call.same(call.graph.operator(Op.SELECT, fbs.SelectAttribute(), given, name, shape, dtype))


def in_steps(node: Node, look: Look) -> str | None:
    """Rows are left between those that are put: others are CONCAT."""
    step = arguments(node)[5]
    return None if step > 1 else f"{node.name} puts rows side by side, which are joined"


def between(values: Values, node: Node) -> None:
    """Put values apart by zeros, and SELECT them where they belong."""
    call = Call(values, node, "nchw")
    _, source, dim, start, end, step = arguments(node)
    shape = call.shape
    at = dim % len(shape)
    begin, _, _ = slice(start, end, step).indices(shape[at])
    value = call.aligned(source)
    count = call.graph.shape(value)[at]
    apart = [*shape[: at + 1], 1, *shape[at + 1 :]]
    apart[at] = count
    value = call.reshape(value, apart, "rows")
    pads = [(0, step - 1 if i == at + 1 else 0) for i in range(len(apart))]
    value = call.reshape(
        padded(call, value, pads, 0, "apart"),
        [*shape[:at], count * step, *shape[at + 1 :]],
        "together",
    )
    reach = min(count * step, shape[at] - begin)
    value = cut(call, value, [0] * len(shape), [*shape[:at], reach, *shape[at + 1 :]], "part")
    around = [(begin, shape[at] - begin - reach) if i == at else (0, 0) for i in range(len(shape))]
    value = padded(call, value, around, 0, "whole")
    held = torch.zeros(shape[at], dtype=torch.bool)
    held[begin : begin + reach : step] = True
    sizes = [shape[at] if i == at else 1 for i in range(len(shape))]
    mask = values.constant(call.fresh("places"), held.reshape(sizes))
    given = [mask, value, call.aligned(call.operands[0])]
    name, dtype = call.fresh("put"), call.graph.dtype(value)
    call.same(call.graph.operator(Op.SELECT, fbs.SelectAttribute(), given, name, shape, dtype))


lowers(
    aten.slice_scatter.default,
    when=(integers, static_shape, both_integer, in_steps),
    profile=Profile.INT,
)(between)
lowers(aten.slice_scatter.default, when=(floating, static_shape, in_steps))(between)
as_they_are(aten.slice_scatter.default, when=(in_steps,))(between)
