# SPDX-License-Identifier: BSD-3-Clause
"""``index_put(x, [i], v)`` -> ``index_put(x, [where(i < 0, i + n, i)], expand(v))``.

ExecuTorch's kernel that writes in place takes one index of one dimension, no negative ones, and as
many values as it writes; what is called otherwise is to keep its arguments.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.mutable_state import KEEPS_ARGUMENTS
from etx_exir.ir.ops import EXPAND
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class ScatterInPlace(NodePass):
    """Write rows as the kernel takes them, or not in place."""

    targets = (aten.index_put.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the call with all values and no negative index."""
        target, indices, values, *accumulate = node.args
        assert isinstance(target, Node)
        assert isinstance(values, Node)
        places: Any = [index for index in indices if index is not None]  # type: ignore[union-attr]
        index = places[0]
        dim = list(indices).index(index)  # type: ignore[arg-type]
        row, given = list(target.meta["val"].shape), list(values.meta["val"].shape)
        known = all(type(size) is int for size in (*row, *given, *index.meta["val"].shape))
        simple = len(places) == 1 and index.meta["val"].dim() == 1 and known
        if any(accumulate) or not simple or index.meta["val"].dtype is torch.bool:
            node.meta[KEEPS_ARGUMENTS] = True
            return None
        shape = [*row[:dim], index.meta["val"].shape[0], *row[dim + 1 :]]
        if given != shape:
            values = graph.call_function(EXPAND, (values, shape))
        constant = self.constant(index)
        if constant is None or bool((constant < 0).any()):
            negative = graph.call_function(aten.lt.Scalar, (index, 0))
            wrapped = graph.call_function(aten.add.Scalar, (index, row[dim]))
            index = graph.call_function(aten.where.self, (negative, wrapped, index))
        found = [None if each is None else index for each in indices]  # type: ignore[union-attr]
        return graph.call_function(aten.index_put.default, (target, found, values))
