# SPDX-License-Identifier: BSD-3-Clause
"""Products of matrices that both are computed."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node

from etx_backend_xnnpack._generated.xnnpack import Binary, Operator
from etx_backend_xnnpack.layout import Size, plain
from etx_backend_xnnpack.nodes.linear import mm_of_constant
from etx_backend_xnnpack.nodes.table import Work, lowers, shape_of
from etx_backend_xnnpack.values import Values

aten = torch.ops.aten

TRANSPOSE_B = 1


def product(values: Values, a: int, b: int, sizes: list[Size], flags: int = 0) -> int:
    """Multiply batches of matrices; return the value."""
    target = values.builder.value(sizes)
    operator = Binary(input1_id=a, input2_id=b, output_id=target, flags=flags)
    values.builder.node(Operator.BatchMatrixMultiply, operator)
    return target


@lowers(aten.bmm.default, work=Work.HEAVY, kind="product")
def bmm(values: Values, node: Node) -> None:
    """Emit a product; what lies transposed on the right stays so."""
    left, right = node.args[:2]
    turned = _innermost_swapped(values, right)
    order = (*plain(len(values.sizes(right)))[:-2], *_swapped(right)) if turned else None
    a, b = values.get(left), values.get(right, order)
    target = values.output(values.result(node), plain(len(values.sizes(node))))
    flags = TRANSPOSE_B if turned else 0
    operator = Binary(input1_id=a, input2_id=b, output_id=target, flags=flags)
    values.builder.node(Operator.BatchMatrixMultiply, operator)


def _swapped(node: Any) -> tuple[int, int]:
    rank = len(shape_of(node))
    return rank - 1, rank - 2


def _innermost_swapped(values: Values, node: Any) -> bool:
    """Tell whether a value lies with its two innermost dimensions swapped."""
    rank = len(values.sizes(node))
    return values.natural(node) == (*plain(rank)[:-2], rank - 1, rank - 2)


@lowers(aten.mm.default, work=Work.HEAVY, kind="linear")
def mm(values: Values, node: Node) -> None:
    """Emit a fully connected node for a constant on the right, else a product."""
    if values.tensor(node.args[1]) is not None:
        mm_of_constant(values, node)
    else:
        bmm(values, node)
