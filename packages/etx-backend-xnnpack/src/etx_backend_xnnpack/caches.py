# SPDX-License-Identifier: BSD-3-Clause
"""``attention(q, put(K, at, k), put(V, at, v), m)`` -> ``attention(q, cat(K, k), cat(V, v), m2)``

where m2 hides the places `at` of K, and beside them is what m has there. What a step of a language
model computes then depends on no cache that it writes: the caches are written behind the delegate.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from etx_exir.ir.equal_values import place_beside
from etx_exir.passes.base import NodePass
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from etx_backend_xnnpack.builder import FLOATS
from etx_backend_xnnpack.nodes.attended import ATTENTION
from etx_backend_xnnpack.nodes.table import shape_of
from etx_backend_xnnpack.quantized import argument

aten = torch.ops.aten
PUT = aten.index_put.default


class CachesBeside(NodePass):
    """Read caches as they were, and beside them what is put there, at places that differ.

    Where places are equal, PyTorch says nothing of what is put there; what a cache held at `at`
    counts with a weight of zero and is finite.
    """

    targets = (ATTENTION,)

    def __init__(self) -> None:
        self._masks: dict[tuple[Node, Node], Node] = {}

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Give `node` caches as they were."""
        key, value = (each for each in node.args[1:3] if isinstance(each, Node))
        places = _places(key)
        if places is None or places is not _places(value) or argument(node, "is_causal"):
            return None
        mask: Any = argument(node, "attn_mask")
        if mask is None or mask.meta["val"].dtype not in FLOATS or not _is_wide(mask, key):
            return None
        if not isinstance(shape_of(places)[0], int) and len(shape_of(mask)) > 2:
            return None
        if (mask, places) not in self._masks:
            self._masks[mask, places] = self._mask(mask, places, graph)
        parts = [
            graph.call_function(aten.cat.default, ([p.args[0], p.args[2]], 2)) for p in (key, value)
        ]
        for part in parts:
            self.propagate(part)
        for old, new in zip((key, value, mask), (*parts, self._masks[mask, places]), strict=True):
            node.replace_input_with(old, new)
        return node

    def _mask(self, mask: Node, places: Node, graph: Graph) -> Node:
        index = [None] * (len(shape_of(mask)) - 1) + [places]
        after = places if _order(places) > _order(mask) else mask
        while after.next.op == "placeholder":
            after = after.next
        number: dict[str, Any] = {"dtype": mask.meta["val"].dtype}
        with graph.inserting_after(after):
            low = graph.call_function(aten.scalar_tensor.default, (-math.inf,), number)
        with graph.inserting_after(low):
            hidden = graph.call_function(PUT, (mask, index, low))
        with graph.inserting_after(hidden):
            seen = graph.call_function(aten.index.Tensor, (mask, index))
        with graph.inserting_after(seen):
            joined = graph.call_function(aten.cat.default, ([hidden, seen], -1))
        for new in (low, hidden, seen, joined):
            self.propagate(new)
            place_beside(new, mask)
        return joined


def _order(node: Node) -> int:
    return list(node.graph.nodes).index(node)


def _is_wide(mask: Node, key: Node) -> bool:
    """Tell whether a mask says something of each place."""
    return bool(shape_of(mask)[-1] == shape_of(key)[2])


def _places(node: Node) -> Node | None:
    """Return the places of the third of four dimensions that a node puts something at."""
    if node.target != PUT or len(shape_of(node)) != 4 or argument(node, "accumulate"):
        return None
    cache, indices, put = node.args[:3]
    if not isinstance(indices, (list, tuple)) or len(indices) != 3 or indices[:2] != [None, None]:
        return None
    places = indices[2]
    if not isinstance(places, Node) or len(shape_of(places)) != 1:
        return None
    if places.meta["val"].dtype not in (torch.int64, torch.int32):
        return None
    sizes = shape_of(cache)
    sizes[2] = shape_of(places)[0]
    same = zip(shape_of(put), sizes, strict=True)
    return places if all(statically_known_true(has == size) for has, size in same) else None
