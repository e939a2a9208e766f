# SPDX-License-Identifier: BSD-3-Clause
"""``to(to(x, a), b)`` -> ``to(x, b)`` where dtype ``a`` holds every number of x's exactly."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import CLONE, TO_COPY, dim_order_of
from etx_exir.passes.base import NodePass

CASTS = (TO_COPY, CLONE)
PROMOTED = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
SIGNIFICANT_BITS = {
    torch.float64: 53,
    torch.float32: 24,
    torch.float16: 11,
    torch.bfloat16: 8,
}


class MergeCopies(NodePass):
    """Copy once: the last dtype and the last layout of a chain are all that is seen."""

    targets = CASTS

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        inner = node.args[0]
        if not isinstance(inner, Node) or inner.target not in CASTS:
            return None
        source = inner.args[0]
        assert isinstance(source, Node)
        before, between, after = (n.meta["val"].dtype for n in (source, inner, node))
        if not holds(between, before):
            return f"{between} does not hold every number of {before}"
        to_integers = between.is_floating_point and not after.is_floating_point
        if to_integers and after is not torch.bool and not holds(after, before):
            return f"{after} does not hold every number of {before}"
        order = list(dim_order_of(node.meta["val"]))
        if after == before:
            return graph.call_function(CLONE, (source,), {"dim_order": order})
        return graph.call_function(TO_COPY, (source,), {"dtype": after, "dim_order": order})


def holds(wide: torch.dtype, narrow: torch.dtype) -> bool:
    """Whether each number of dtype `narrow` is one of dtype `wide`."""
    if wide == narrow or narrow is torch.bool:
        return True
    if wide is torch.bool or wide.is_complex or narrow.is_complex:
        return False
    if narrow.is_floating_point:
        return wide in PROMOTED and narrow in PROMOTED and torch.promote_types(wide, narrow) == wide
    limits = torch.iinfo(narrow)
    if wide.is_floating_point:
        return limits.bits <= SIGNIFICANT_BITS.get(wide, 0)
    return torch.iinfo(wide).min <= limits.min and limits.max <= torch.iinfo(wide).max
