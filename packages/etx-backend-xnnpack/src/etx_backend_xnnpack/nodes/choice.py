# SPDX-License-Identifier: BSD-3-Clause
"""Choices by a mask that is known: bounds that let a number pass, or leave only the other one.

``where(mask, x, c)`` is ``max(min(x, where(mask, inf, c)), where(mask, -inf, c))``, exactly; but
XNNPACK makes +inf of a NaN.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.ir.constants import Constants
from torch import Tensor
from torch.fx import Node

from etx_backend_xnnpack import layout
from etx_backend_xnnpack._generated.xnnpack import Operator
from etx_backend_xnnpack.layout import Order
from etx_backend_xnnpack.nodes.elementwise import common_order, operand
from etx_backend_xnnpack.nodes.table import lowers, shape_of
from etx_backend_xnnpack.values import Values

aten = torch.ops.aten

MOST_ELEMENTS = 1 << 22


def known_mask(node: Node, constants: Constants) -> str | None:
    """Require a constant mask of at most 16 MB as float32."""
    index = 0 if node.target == aten.where.self else 1
    mask = constants.get(node.args[index])
    if mask is None:
        return "its mask is computed at run time"
    if not all(isinstance(size, int) for size in shape_of(node)):
        return "its sizes are known at run time only"
    return "its mask would take more than 16 MB" if mask.numel() > MOST_ELEMENTS else None


def chosen(
    values: Values, number: int, mask: Tensor, other: Tensor, order: Order, target: int
) -> int:
    """Add the nodes that put `other` where `mask` is false; both broadcast to the value."""
    kept, other = mask.expand_as(mask | other.isnan()), other.expand_as(mask | other.isnan())
    for kind, open_ in ((Operator.Minimum, math.inf), (Operator.Maximum, -math.inf)):
        bound = torch.where(kept, torch.tensor(open_), other.to(torch.float32))
        wide = bound.reshape([1] * (len(order) - bound.dim()) + list(bound.shape))
        limit = values.builder.constant(wide.permute(order))
        last = kind is Operator.Maximum
        into = target if last else values.builder.value(values.builder.sizes(target))
        number = values.builder.binary(kind, number, limit, into)
    return number


def _widened(values: Values, number: int, given: list[Any], sizes: list[Any]) -> int:
    """Repeat a value of fewer elements to `sizes`."""
    if math.prod(given) == math.prod(sizes):
        return number
    ones = values.builder.constant(torch.ones(sizes))
    return values.builder.binary(Operator.Multiply, number, ones, values.builder.value(sizes))


def _masked(values: Values, node: Node, x: Any, mask: Tensor, other: Tensor) -> None:
    order = common_order(values, node, [x])
    sizes = layout.ordered(values.sizes(node), order)
    number = _widened(values, operand(values, x, order), values.sizes(x), sizes)
    chosen(values, number, mask, other, order, values.output(values.result(node), order))


@lowers(aten.masked_fill.Scalar, when=[known_mask], masks=True, note="bounds by the mask")
def masked_fill(values: Values, node: Node) -> None:
    """Emit a minimum and a maximum."""
    mask = values.constants.get(node.args[1])
    assert mask is not None
    number: Any = node.args[2]
    _masked(values, node, node.args[0], ~mask, torch.tensor(float(number)))


@lowers(aten.where.self, when=[known_mask], masks=True, note="bounds by the mask")
def where(values: Values, node: Node) -> None:
    """Emit a minimum and a maximum, of two computed tensors those of each and a sum."""
    mask = values.constants.get(node.args[0])
    assert mask is not None
    first, second = node.args[1:3]
    known, other = values.tensor(first), values.tensor(second)
    if other is not None:
        _masked(values, node, first, mask, other)
    elif known is not None:
        _masked(values, node, second, ~mask, known)
    else:
        order = common_order(values, node, [first, second])
        sizes = layout.ordered(values.sizes(node), order)
        parts = []
        for x, kept in ((first, mask), (second, ~mask)):
            number = _widened(values, operand(values, x, order), values.sizes(x), sizes)
            part = values.builder.value(sizes)
            parts.append(chosen(values, number, kept, torch.tensor(0.0), order, part))
        target = values.output(values.result(node), order)
        values.builder.binary(Operator.Add, parts[0], parts[1], target)
