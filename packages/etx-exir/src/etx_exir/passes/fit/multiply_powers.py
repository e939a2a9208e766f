# SPDX-License-Identifier: BSD-3-Clause
"""``x ** 5`` -> ``(x * x) * (x * x) * x`` of integers.

ExecuTorch's kernel computes powers in float64, which neither holds all int64 nor wraps.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import CLONE, TO_COPY, dim_order_of
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class MultiplyPowers(NodePass):
    """Multiply where a power of integers is known."""

    targets = (aten.pow.Tensor_Scalar,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the product; squares of squares take few calls."""
        value, (base, exponent) = node.meta["val"], node.args
        if value.is_floating_point() or type(exponent) not in (bool, int):
            return None
        left = int(exponent)  # type: ignore[arg-type]
        if left == 0:
            return graph.call_function(aten.full_like.default, (base, 1), {"dtype": value.dtype})
        square = base
        if isinstance(base, Node) and base.meta["val"].dtype != value.dtype:
            square = graph.call_function(TO_COPY, (base,), {"dtype": value.dtype})
        result = None
        while left:
            if left & 1:
                factors = (result, square)
                result = graph.call_function(aten.mul.Tensor, factors) if result else square
            left >>= 1
            if left:
                square = graph.call_function(aten.mul.Tensor, (square, square))
        if result is base:
            order = list(dim_order_of(value))
            return graph.call_function(CLONE, (base,), {"dim_order": order})
        return result  # type: ignore[return-value]
