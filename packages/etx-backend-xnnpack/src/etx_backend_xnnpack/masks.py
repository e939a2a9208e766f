# SPDX-License-Identifier: BSD-3-Clause
"""``attention(q, k, v, seen)`` -> ``attention(q, k, v, where(seen, 0, -inf))``."""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.ir.equal_values import place_beside
from etx_exir.passes.base import NodePass
from torch.fx import Graph, Node

from etx_backend_xnnpack.nodes.attended import ATTENTION
from etx_backend_xnnpack.quantized import argument

aten = torch.ops.aten


class AddedMasks(NodePass):
    """Turn masks of attention that say what is seen into what is added, once a mask."""

    targets = (ATTENTION,)

    def __init__(self) -> None:
        self._added: dict[tuple[Graph, Node, torch.dtype], Node] = {}

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Give `node` a mask of its own dtype."""
        mask: Any = argument(node, "attn_mask")
        if mask is None or mask.meta["val"].dtype is not torch.bool:
            return None
        key = graph, mask, node.meta["val"].dtype
        if key not in self._added:
            self._added[key] = self._add(*key)
        node.replace_input_with(mask, self._added[key])
        return node

    def _add(self, graph: Graph, mask: Node, dtype: torch.dtype) -> Node:
        known = self.constant(mask)
        if known is not None:
            hidden = torch.zeros(known.shape, dtype=dtype).masked_fill(~known, -math.inf)
            return self.constants.add(hidden, f"{mask.name}_added", self.mode)
        after = mask
        while after.next.op == "placeholder":
            after = after.next
        with graph.inserting_after(after):
            numbers = [
                graph.call_function(aten.scalar_tensor.default, (number,), {"dtype": dtype})
                for number in (-math.inf, 0.0)
            ]
        with graph.inserting_after(numbers[0]):
            added = graph.call_function(aten.where.self, (mask, numbers[1], numbers[0]))
        for new in (*numbers, added):
            self.propagate(new)
            place_beside(new, mask)
        return added
