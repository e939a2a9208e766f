# SPDX-License-Identifier: BSD-3-Clause
"""Functions of one int8 tensor as tables of 256 results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import INT8, Operand, Scale, operand
from etx_exir.ir.dim_order import dim_order_of
from etx_exir.ir.integer_ops import LOOKUP
from etx_exir.ir.layout import same_sizes
from etx_exir.ir.ops import is_pointwise

INTEGERS = torch.arange(INT8[0], INT8[1] + 1, dtype=torch.int8)


def lookup(quantize: Node, scale: Scale, layouts: Layouts) -> Node | str | None:
    """Return the int8 result of the elementwise operators between one int8 tensor and `quantize`.

    None where they have no or several such tensors, for then nothing near a table is there.
    """
    region = _region(quantize)
    if region is None:
        return None
    inner, x = region
    if (
        not inner
        and x.scale.same(scale)
        and (x.scale.low >= scale.low and x.scale.high <= scale.high)
    ):
        return x.node
    table = _tabulate([*sorted(inner), quantize])
    if table.shape != INTEGERS.shape:
        return "the function does not have one result for each integer"
    return mapped(x.node, table, quantize.name, layouts)


def mapped(node: Node, table: Tensor, name: str, layouts: Layouts) -> Node:
    """Return for each integer of `node` its result in `table`."""
    nodes, moved = layouts.common([node])
    result = layouts.call(LOOKUP, nodes[0], layouts.constant(table, f"{name}_table"))
    return layouts.channels_first(result) if moved else result


def _tabulate(calls: Sequence[Node]) -> Tensor:
    """Compute the last of `calls` for all integers."""
    values: dict[Node, Any] = {}
    for node in calls:
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: _value(n, values))
        target: Any = node.target
        values[node] = target(*args, **{k: v for k, v in kwargs.items() if k != "dim_order"})
    result: Tensor = values[calls[-1]]
    return result


def _value(node: Node, values: dict[Node, Any]) -> Any:
    """Return the value of a node of the region, computing that of all integers dequantized."""
    if node not in values:
        _, *rest = node.args
        target: Any = node.target
        values[node] = target(INTEGERS, *rest, **node.kwargs)
    return values[node]


def _region(quantize: Node) -> tuple[set[Node], Operand] | None:
    """Return the elementwise operators that only `quantize` needs, and their one operand."""
    inner: set[Node] = set()
    leaves: list[Operand] = []
    shape, order = quantize.meta["val"].shape, dim_order_of(quantize.meta["val"])
    pending = [quantize]
    while pending:
        for arg in pending.pop().all_input_nodes:
            leaf = operand(arg)
            if isinstance(leaf, Operand):
                leaves.append(leaf)
            elif arg not in inner:
                value = arg.meta["val"]
                if not is_pointwise(arg.target) or not same_sizes(value.shape, shape):
                    return None
                if dim_order_of(value) != order:
                    return None
                inner.add(arg)
                pending.append(arg)
    if not leaves or any(
        leaf.node is not leaves[0].node or not leaf.scale.same(leaves[0].scale) for leaf in leaves
    ):
        return None
    value = leaves[0].node.meta["val"]
    if not same_sizes(value.shape, shape) or dim_order_of(value) != order:
        return None
    if any(user not in inner and user is not quantize for node in inner for user in node.users):
        return None
    return inner, leaves[0]
