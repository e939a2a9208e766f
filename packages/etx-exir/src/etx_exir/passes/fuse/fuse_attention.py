# SPDX-License-Identifier: BSD-3-Clause
"""``bmm(softmax(bmm(q, k^T) * scale + mask), v)`` -> ``attention(q, k, v, mask, scale)``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import mul
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import same_shape, same_size, size, sizes
from etx_exir.ir.ops import EXPAND, VIEW
from etx_exir.ir.own_ops import ATTENTION
from etx_exir.passes.base import NodePass
from etx_exir.passes.fuse.fuse_transposes import Turned

aten = torch.ops.aten

ARANGE = aten.arange.start_step
BMM = aten.bmm.default
FILLED = aten.masked_fill.Scalar
SOFTMAX = aten._softmax.default
WHERE = aten.where.self
MASKED = (aten.add.Tensor, FILLED, WHERE)
NOT = (aten.bitwise_not.default, aten.logical_not.default)
SCALED: dict[Any, Any] = {aten.mul.Scalar: lambda x: x, aten.div.Scalar: lambda x: 1 / x}


@dataclass
class Scores:
    """What lies between the first product and the softmax."""

    product: Node
    scale: float = 1.0
    mask: Node | None = None
    hidden: bool = False  # the mask is true where a key takes no part
    is_causal: bool = False
    shape: list[Any] = field(default_factory=list)


class FuseAttention(NodePass):
    """Compute some rows of the scores at a time, from the keys as they are stored."""

    targets = (BMM,)
    makes = frozenset({ATTENTION})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        weights, value = node.args
        while isinstance(weights, Node) and weights.target is VIEW and _keeps_rows(weights):
            weights = weights.args[0] if len(weights.users) == 1 else None
        if not isinstance(weights, Node) or weights.target is not SOFTMAX:
            return None
        if node.meta["val"].dtype is not torch.float32:
            return "only float32 is computed as a whole"
        scores = self._scores(weights)
        if isinstance(scores, str):
            return scores
        seen_as: Any = node.args[0]
        if not same_shape(seen_as.meta["val"], scores.product.meta["val"]):
            return "the products are of other batches"
        query, keys = scores.product.args
        key = self._rows_of(keys, graph)
        if key is None:
            return "the keys are not the transpose of rows"
        query, scores.scale = self._unscaled(query, scores.scale, graph)
        mask = scores.mask
        if mask is not None and scores.hidden:
            mask = graph.call_function(aten.logical_not.default, (mask,))
        rest = (mask, scores.shape, scores.scale, scores.is_causal)
        shared = self._shared(query, key, value, scores, graph)
        if shared is None:
            return graph.call_function(ATTENTION, (query, key, value, *rest))
        rows = size(graph, query, 1)
        width = size(graph, value, 2)  # type: ignore[arg-type]
        mixed = graph.call_function(ATTENTION, (*shared, *rest))
        return graph.call_function(VIEW, (mixed, [-1, rows, width]))

    def _shared(
        self, query: Node, key: Node, value: Any, scores: Scores, graph: Graph
    ) -> tuple[Node, Node, Node] | None:
        """Return the operands where keys and values are repeated for neighbouring heads.

        The queries of these heads are further rows of one; the order of all rows stays.
        """
        repeated = [_repeated(node) for node in (key, value)]
        counts = {count for _, count in repeated}
        if counts in ({1}, {0}) or len(counts) > 1:
            return None
        if scores.is_causal and not scores.shape:
            return None
        (count,) = counts
        sources = [
            self.call(graph, VIEW, source, [-1, *sizes(graph, source)[-2:]])
            for source, _ in repeated
        ]
        rows, width = size(graph, query, 1), size(graph, query, 2)
        lines = count * rows if isinstance(rows, int) else graph.call_function(mul, (count, rows))
        if isinstance(rows, Node) and isinstance(lines, Node):
            lines.meta["val"] = count * rows.meta["val"]
        query = self.call(graph, VIEW, query, [-1, lines, width])
        return query, sources[0], sources[1]

    def _rows_of(self, keys: Any, graph: Graph) -> Node | None:
        """Return (N, L, E) of which `keys` (N, E, L) are the transpose."""
        extents = keys.meta["val"].shape
        if any(same_size(extent, 1) for extent in extents[1:]):
            _, width, count = sizes(graph, keys)
            return self.call(graph, VIEW, keys, [-1, count, width])
        turned = Turned.of(keys)
        return None if turned is None else turned.rows(self, graph)

    def _unscaled(self, query: Any, scale: float, graph: Graph) -> tuple[Node, float]:
        """Return the query before it was multiplied by a number, and `scale` times the number."""
        view = query if query.target is VIEW else None
        scaled = query.args[0] if view is not None else query
        is_own = len(query.users) == 1 and isinstance(scaled, Node) and len(scaled.users) == 1
        if not is_own or not _is_scaled(scaled):
            return query, scale
        factor = SCALED[scaled.target](scaled.args[1])
        source: Any = scaled.args[0]
        if source.meta["val"].dtype is not torch.float32:
            return query, scale
        if view is not None:
            source = self.call(graph, VIEW, source, view.args[1])
        return source, scale * factor

    def _scores(self, softmax: Node) -> Scores | str:
        """Follow the argument of a softmax over the last dimension back to a product."""
        if softmax.args[1] not in (-1, softmax.meta["val"].dim() - 1):
            return "the softmax is not over the keys"
        found = Scores(softmax)
        node: Any = softmax
        below: Any = softmax.args[0]
        while True:
            if len(node.users) != 1:
                return f"{node.name} is read by more than one operator"
            node = below
            if not isinstance(node, Node) or len(node.users) != 1:
                return f"{node} is read by more than one operator"
            if node.target is BMM:
                found.product = node
                return found
            is_masked = found.mask is not None or found.is_causal
            if node.target is VIEW and _keeps_rows(node):
                shape: Any = node.args[1]
                if is_masked and not found.shape:
                    found.shape = list(shape)
                below = node.args[0]
            elif _is_scaled(node):
                found.scale *= SCALED[node.target](node.args[1])
                below = node.args[0]
            elif node.target in MASKED and not is_masked and found.scale == 1:
                below = self._masked(node, found)
            else:
                return f"{node.target} lies between a product and the softmax of its result"

    def _masked(self, node: Node, found: Scores) -> Any:
        """Note the mask of a sum or choice; return the scores below it, None where it has none."""
        args: Any = node.args
        mask: Any
        below: Any
        if node.target is FILLED:
            below, mask, number = args
            found.hidden = True
            pairs = [(mask, below)] if number == -math.inf else []
        elif node.target is WHERE:
            mask, *values = args
            numbers = [self._number(value) for value in values]
            if -math.inf not in numbers:
                return None
            found.hidden = numbers[0] == -math.inf
            pairs = [(mask, values[1] if found.hidden else values[0])]
        elif node.kwargs.get("alpha", 1) != 1:
            return None
        else:
            first, second = args
            pairs = [(second, first), (first, second)]
        fitting = (pair for pair in pairs if _is_scores(pair[1]) and _covers(*pair, node))
        mask, below = next(fitting, (None, None))
        if mask is None:
            return None
        if found.hidden and mask.target in NOT and mask.args[0].meta["val"].dtype is torch.bool:
            found.hidden, mask = False, mask.args[0]
        seen = self._seen(mask) if node.target is aten.add.Tensor else mask
        if seen is not None and not found.hidden and _is_causal(seen, below):
            found.is_causal = True
        elif mask.meta["val"].dtype in (torch.float32, torch.bool):
            found.mask = mask if seen is None else seen
        else:
            return None
        return below

    def _seen(self, mask: Node) -> Node | None:
        """Return the condition under which a mask is 0, where it is -inf elsewhere."""
        if mask.target is not WHERE:
            return None
        seen, zero, hidden = mask.args
        if not isinstance(seen, Node) or seen.meta["val"].dim() != mask.meta["val"].dim():
            return None
        return seen if self._number(zero) == 0 and self._number(hidden) == -math.inf else None

    def _number(self, node: Any) -> float | None:
        value = self.constant(node)
        return float(value.item()) if value is not None and value.numel() == 1 else None


def _is_scaled(node: Node) -> bool:
    """Tell whether a node multiplies by a number that is known."""
    if node.target not in SCALED:
        return False
    number = node.args[1]
    return isinstance(number, int | float) and number != 0


def _keeps_rows(view: Node) -> bool:
    """Tell whether a view leaves the last dimension as it is."""
    source: Any = view.args[0]
    shape, given = view.meta["val"].shape, source.meta["val"].shape
    return bool(shape) and bool(given) and same_size(shape[-1], given[-1])


def _is_scores(node: Any) -> bool:
    """Tell whether a node leads back to a product."""
    while isinstance(node, Node) and (node.target is VIEW or _is_scaled(node)):
        node = node.args[0]
    return isinstance(node, Node) and node.target is BMM


def _covers(mask: Any, scores: Any, result: Node) -> bool:
    """Tell whether a mask has a column for each key and broadcasts to scores, not these to it."""
    if not isinstance(mask, Node):
        return False
    given, shape, whole = (node.meta["val"].shape for node in (mask, scores, result))
    if not given or len(given) > len(shape) or len(shape) != len(whole):
        return False
    pairs = zip(reversed(given), reversed(shape), strict=False)
    fits = all(same_size(a, b) or same_size(a, 1) for a, b in pairs)
    return fits and same_size(given[-1], shape[-1]) and all(map(same_size, shape, whole))


def _is_causal(seen: Node, scores: Node) -> bool:
    """Tell whether row i sees the keys up to i: ``arange(keys) <= arange(rows)[:, None]``."""
    given, shape = seen.meta["val"].shape, scores.meta["val"].shape
    if seen.target is not aten.le.Tensor or len(given) != 2:
        return False
    keys, rows = seen.args
    if not (isinstance(rows, Node) and rows.target is VIEW and isinstance(keys, Node)):
        return False
    ranges: Any = (keys, rows.args[0])
    counted = all(n.target is ARANGE and n.args[0] == 0 and len(n.args) == 2 for n in ranges)
    return counted and all(map(same_size, given, shape[-2:]))


def _repeated(node: Any) -> tuple[Node, int]:
    """Return what is repeated to (N, L, E), (…, 1, L, E), and how often; 1 where nothing is."""
    found = node
    while found.target is VIEW and _keeps_matrices(found):
        found = found.args[0]
    if found.target is not EXPAND:
        return node, 1
    source: Any = found.args[0]
    before, after = source.meta["val"].shape, found.meta["val"].shape
    if len(before) != len(after) or len(after) < 3 or not isinstance(after[-3], int):
        return node, 1
    others = [
        *zip(before[:-3], after[:-3], strict=True),
        *zip(before[-2:], after[-2:], strict=True),
    ]
    is_one = same_size(before[-3], 1) and all(same_size(a, b) for a, b in others)
    return (source, after[-3]) if is_one else (node, 1)


def _keeps_matrices(view: Node) -> bool:
    """Tell whether a view leaves the last two dimensions as they are."""
    source: Any = view.args[0]
    shape, given = view.meta["val"].shape, source.meta["val"].shape
    fits = len(shape) > 1 and len(given) > 1
    return fits and all(map(same_size, shape[-2:], given[-2:]))
