# SPDX-License-Identifier: BSD-3-Clause
"""``x << n`` -> ``where(0 <= n < bits, x << n, 0)``.

ExecuTorch's kernels shift by what the processor makes of a number that is out of bounds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass

aten = torch.ops.aten
LEFT = (aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar)


class BoundShifts(NodePass):
    """Shift by less than the bits of a number, whatever is given."""

    targets = (
        *LEFT,
        aten.bitwise_right_shift.Tensor,
        aten.bitwise_right_shift.Tensor_Scalar,
    )

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the shift with what eager gives out of bounds, None where none is."""
        value, (source, count) = node.meta["val"], node.args
        bits = value.dtype.itemsize * 8
        fills = node.target not in LEFT and value.dtype != torch.uint8
        if type(count) is int:
            if 0 <= count < bits:
                return None
            if fills:
                return graph.call_function(node.target, (source, bits - 1))  # type: ignore[arg-type]
            return graph.call_function(aten.full_like.default, (source, 0), {"dtype": value.dtype})
        known = self.constant(count)
        if not isinstance(count, Node) or not isinstance(count.meta["val"], torch.Tensor):
            return None
        if known is not None and bool(((known >= 0) & (known < bits)).all()):
            return None
        low = graph.call_function(aten.ge.Scalar, (count, 0))
        high = graph.call_function(aten.lt.Scalar, (count, bits))
        within = graph.call_function(aten.logical_and.default, (low, high))

        def number(item: int, dtype: torch.dtype) -> Any:
            return graph.call_function(aten.scalar_tensor.default, (item,), {"dtype": dtype})

        if fills:
            most = number(bits - 1, count.meta["val"].dtype)
            bounded = graph.call_function(aten.where.self, (within, count, most))
            return graph.call_function(node.target, (source, bounded))  # type: ignore[arg-type]
        shifted = graph.call_function(node.target, (source, count))  # type: ignore[arg-type]
        return graph.call_function(aten.where.self, (within, shifted, number(0, value.dtype)))
