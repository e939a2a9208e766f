# SPDX-License-Identifier: BSD-3-Clause
"""``attention(q, k, v, mask)`` -> ``dropout(softmax(scale * q @ k^T + mask)) @ v``.

Scores and weights of float16 and bfloat16 are float32: a step of a score is an error of the weights
in proportion, and eager rounds weights where they are not divided by their sum yet. A row that the
mask hides completely is zero. The work for that is left out where no row can be: without a mask,
and with a causal one. Heads that share keys (GQA) are rows of one product.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import Size, same_size, size, sizes, with_inferred
from etx_exir.analysis.value_range import is_finite
from etx_exir.ir.dim_order import TO_COPY
from etx_exir.ir.ops import EXPAND, PERMUTE, UNSQUEEZE, VIEW
from etx_exir.passes.base import NodePass

aten = torch.ops.aten

ATTENTION = aten.scaled_dot_product_attention.default
HALVES = (torch.float16, torch.bfloat16)


class LowerAttention(NodePass):
    """Write attention as two batched products around a softmax."""

    targets = (ATTENTION,)
    lowers = frozenset(targets)

    def rewrite(self, node: Node, graph: Graph) -> Node:
        query, key, value, mask, dropout, causal = (
            _argument(node, index, default)
            for index, default in enumerate((None, None, None, None, 0.0, False))
        )
        dtype = query.meta["val"].dtype
        exact = torch.float32 if dtype in HALVES else dtype
        scale = node.kwargs.get("scale") or 1 / math.sqrt(query.meta["val"].shape[-1])
        query, key, value = (self._cast(graph, x, exact) for x in (query, key, value))
        query, key, value = self._aligned(graph, query, key, value)
        rows = Rows(self, graph, query, key)
        scaled = rows.split(self.call(graph, aten.mul.Scalar, query, scale))
        turned = self.transpose(graph, key)
        shape = [*sizes(graph, scaled)[:-1], *sizes(graph, key)[-2:-1]]
        scores = self.product(graph, scaled, turned)
        if causal:
            mask = self._causal(graph, query, key)
        hides = None
        if mask is not None:
            bias, hides = self._bias(graph, mask, exact, causal)
            scores = rows.add(self.view(graph, scores, shape), bias)
        weights = self.call(graph, aten._softmax.default, scores, -1, False)
        if dropout:
            dropped = self.call(graph, aten.native_dropout.default, weights, dropout, True)
            weights = self.call(graph, operator.getitem, dropped, 0)
        mixed = self._cast(graph, self.product(graph, weights, value), dtype)
        mixed = rows.join(mixed, value)
        if hides is None:
            return mixed
        zero = self.scalar(0.0, dtype, graph)
        return self.call(graph, aten.where.self, hides, mixed, zero)

    def transpose(self, graph: Graph, node: Node) -> Node:
        """Swap the two innermost dimensions."""
        order = list(range(node.meta["val"].dim()))
        order[-2:] = order[-1], order[-2]
        return self.call(graph, PERMUTE, node, order)

    def product(self, graph: Graph, left: Node, right: Node) -> Node:
        """Multiply batches of matrices; the result has one batch dimension."""
        return self.call(graph, aten.bmm.default, self._flat(graph, left), self._flat(graph, right))

    def _aligned(self, graph: Graph, query: Node, key: Node, value: Node) -> list[Node]:
        """Expand batch dimensions to those of all; keys have fewer heads where they are shared."""
        rank = max(node.meta["val"].dim() for node in (query, key, value))
        heads, shared = rank - 3, _largest((key, value), rank, rank - 3)
        most = [_largest((query, key, value), rank, dim) for dim in range(rank - 2)]
        fewer = list(most)
        if rank > 2 and _groups(_extent(most[heads], rank, heads), _extent(shared, rank, heads)):
            fewer[heads] = shared
        return [
            self._expand(graph, node, batch, rank)
            for node, batch in ((query, most), (key, fewer), (value, fewer))
        ]

    def _expand(self, graph: Graph, node: Node, batch: list[Node], rank: int) -> Node:
        """Give a tensor the batch dimensions of these, each of which has one of them."""
        extents = [_extent(source, rank, dim) for dim, source in enumerate(batch)]
        missing = rank - node.meta["val"].dim()
        if missing == 0 and all(map(same_size, node.meta["val"].shape, extents)):
            return node
        lead = [
            size(graph, source, dim - rank) if not same_size(extent, 1) else 1
            for dim, (source, extent) in enumerate(zip(batch, extents, strict=True))
        ]
        return self.call(graph, EXPAND, node, [*lead, *sizes(graph, node)[-2:]])

    def view(self, graph: Graph, node: Node, shape: list[Size]) -> Node:
        """Reshape without a copy."""
        return self.call(graph, VIEW, node, with_inferred(shape))

    def _flat(self, graph: Graph, node: Node) -> Node:
        if node.meta["val"].dim() == 3:
            return node
        shape = sizes(graph, node)
        lead: Size = 1
        for extent in shape[:-2]:
            lead = self.times(graph, lead, extent)
        return self.view(graph, node, [lead, *shape[-2:]])

    def times(self, graph: Graph, a: Size, b: Size) -> Size:
        """Multiply two sizes, at run time where one is symbolic."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self.call(graph, operator.mul, a, b)

    def scalar(self, number: float, dtype: torch.dtype, graph: Graph) -> Node:
        """Return a tensor without dimensions that holds `number`."""
        return self.call(graph, aten.scalar_tensor.default, number, dtype=dtype)

    def _causal(self, graph: Graph, query: Node, key: Node) -> Node:
        rows, columns = sizes(graph, query)[-2], sizes(graph, key)[-2]
        above = self.call(graph, aten.arange.start_step, 0, rows)
        below = self.call(graph, aten.arange.start_step, 0, columns)
        above = self.call(graph, UNSQUEEZE, above, 1)
        return self.call(graph, aten.le.Tensor, below, above)

    def _bias(
        self, graph: Graph, mask: Node, dtype: torch.dtype, causal: bool
    ) -> tuple[Node, Node | None]:
        """Return what is added to the scores, and which rows see anything at all."""
        if mask.meta["val"].dtype is torch.bool:
            nothing = self.scalar(0.0, dtype, graph)
            hidden = self.scalar(-math.inf, dtype, graph)
            bias = self.call(graph, aten.where.self, mask, nothing, hidden)
            return bias, None if causal else self.call(graph, aten.any.dim, mask, -1, True)
        bias = self._cast(graph, mask, dtype)
        if is_finite(mask, self.constants):
            return bias, None
        seen = self.call(graph, aten.ne.Scalar, mask, -math.inf)
        return bias, self.call(graph, aten.any.dim, seen, -1, True)

    def _cast(self, graph: Graph, node: Node, dtype: torch.dtype) -> Node:
        if node.meta["val"].dtype == dtype:
            return node
        return self.call(graph, TO_COPY, node, dtype=dtype)


class Rows:
    """Query heads that share a key head, as further rows of it."""

    def __init__(self, lower: LowerAttention, graph: Graph, query: Node, key: Node) -> None:
        self.lower, self.graph = lower, graph
        self.shape = sizes(graph, query)
        rank, shared = len(self.shape), _extent(key, len(self.shape), len(self.shape) - 3)
        self.groups = _groups(_extent(query, rank, rank - 3), shared) or 1
        self.heads = shared if self.groups > 1 else 0

    def split(self, query: Node) -> Node:
        """Return (…, heads, L, E) as (…, key heads, groups * L, E)."""
        if self.groups == 1:
            return query
        *batch, _, rows, width = self.shape
        lines = self.lower.times(self.graph, self.groups, rows)
        return self.lower.view(self.graph, query, [*batch, self.heads, lines, width])

    def add(self, scores: Node, bias: Node) -> Node:
        """Add the mask of each query head to its rows."""
        lower, graph = self.lower, self.graph
        if self.groups == 1:
            return lower.call(graph, aten.add.Tensor, scores, bias)
        lines = sizes(graph, scores)
        apart = [*lines[:-2], self.groups, self.shape[-2], lines[-1]]
        shape = sizes(graph, bias)
        if len(shape) > 2:
            split = [self.heads, self.groups] if shape[-3] != 1 else [1, 1]
            bias = lower.view(graph, bias, [*shape[:-3], *split, *shape[-2:]])
        added = lower.call(graph, aten.add.Tensor, lower.view(graph, scores, apart), bias)
        return lower.view(graph, added, lines)

    def join(self, mixed: Node, value: Node) -> Node:
        """Return (batch * key heads, groups * L, E) as (…, heads, L, E)."""
        width = sizes(self.graph, value)[-1]
        return self.lower.view(self.graph, mixed, [*self.shape[:-1], width])


def _extent(node: Node, rank: int, dim: int) -> Any:
    """Return the size of a dimension of `rank`, one where the tensor has fewer."""
    shape = node.meta["val"].shape
    own = dim - (rank - len(shape))
    return shape[own] if own >= 0 else 1


def _largest(nodes: Sequence[Node], rank: int, dim: int) -> Node:
    """Return the first tensor of those that broadcast whose size is not one."""
    return next((n for n in nodes if not same_size(_extent(n, rank, dim), 1)), nodes[0])


def _groups(heads: Any, shared: Any) -> int:
    """Return how many heads share one of keys; 0 where each has its own or sizes are symbolic."""
    if not (isinstance(heads, int) and isinstance(shared, int)) or heads in (0, shared):
        return 0
    return 0 if shared == 0 or heads % shared else heads // shared


def _argument(node: Node, index: int, default: Any) -> Any:
    name = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")[index]
    return node.args[index] if len(node.args) > index else node.kwargs.get(name, default)
