# SPDX-License-Identifier: BSD-3-Clause
"""``sum(x)`` -> ``sum(high(x)) * 2**32 + sum(low(x))`` of int64, ``n * mean(x)`` of float64.

ExecuTorch's kernel adds int64 in float64, which holds no sum beyond 2**53 but those of halves, and
float64 in float32, which its kernel of the mean does not.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import TO_COPY
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
NARROW = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32)
BITS = 32


class SplitSums(NodePass):
    """Add the halves of numbers that float64 does not hold."""

    targets = (aten.sum.dim_IntList,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the sum of two sums, or of what was converted to int64 before."""
        source, *dims = node.args
        dtype = node.meta["val"].dtype
        if isinstance(source, Node) and source.meta["val"].dtype == torch.float64:
            return _from_mean(node, source, graph)
        if not isinstance(source, Node) or source.meta["val"].dtype != torch.int64:
            return None

        def added(value: Any, kind: torch.dtype | None = None) -> Node:
            kwargs: dict[str, Any] = {} if kind is None else {"dtype": kind}
            return graph.call_function(aten.sum.dim_IntList, (value, *dims), kwargs)

        def copied(value: Any, kind: torch.dtype) -> Node:
            return graph.call_function(TO_COPY, (value,), {"dtype": kind})

        if dtype != torch.int64:
            return added(copied(source, dtype), dtype)
        before = source.args[0] if source.target is TO_COPY else None
        if isinstance(before, Node) and before.meta["val"].dtype in NARROW:
            return added(before)
        low = copied(source, torch.int32)
        rest = graph.call_function(aten.sub.Tensor, (source, copied(low, torch.int64)))
        high = graph.call_function(aten.bitwise_right_shift.Tensor_Scalar, (rest, BITS))
        sums = added(copied(high, torch.int32)), added(low)
        high = graph.call_function(aten.mul.Scalar, (sums[0], 1 << BITS))
        return graph.call_function(aten.add.Tensor, (high, sums[1]))


def _from_mean(node: Node, source: Node, graph: Graph) -> Node | None:
    """Return the mean times how many it is of; None where that is dynamic, or nothing."""
    kept, shape = node.meta["val"].numel(), source.meta["val"].shape
    if not shape or not all(isinstance(size, int) for size in shape) or not kept:
        return None
    count = source.meta["val"].numel() // kept
    if count == 0 or node.meta["val"].dtype != torch.float64:
        return None
    mean = graph.call_function(aten.mean.dim, node.args)
    return graph.call_function(aten.mul.Scalar, (mean, count))
