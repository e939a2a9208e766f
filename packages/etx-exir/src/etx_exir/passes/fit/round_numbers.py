# SPDX-License-Identifier: BSD-3-Clause
"""``x == 0.1`` -> ``x == half(0.1)`` of halves, ``clamp(u, -1)`` -> ``clamp(u, 255)`` of uint8.

ExecuTorch's kernels compare with the number itself, and refuse bounds and factors that a dtype
lacks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass

aten = torch.ops.aten
ADDED = (aten.add.Tensor, aten.sub.Tensor)
HALVES = (torch.float16, torch.bfloat16)


class RoundNumbers(NodePass):
    """Give numbers the dtype of the tensor beside them, as eager does."""

    targets = (
        aten.eq.Scalar,
        aten.ne.Scalar,
        aten.lt.Scalar,
        aten.le.Scalar,
        aten.gt.Scalar,
        aten.ge.Scalar,
        aten.clamp.default,
        *ADDED,
    )

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Change the numbers of a call in place."""
        source: Any = node.args[0]
        wraps = node.target is aten.clamp.default or node.target in ADDED
        dtype = (node if node.target in ADDED else source).meta["val"].dtype
        if dtype != torch.uint8 if wraps else dtype not in HALVES:
            return None

        def rounded(number: Any) -> Any:
            if type(number) not in (int, float):
                return number
            return number % 256 if wraps else torch.tensor(number, dtype=dtype).item()

        args = (source, *map(rounded, node.args[1:]))
        kwargs = {name: rounded(number) for name, number in node.kwargs.items()}
        if (args, kwargs) == (node.args, node.kwargs):
            return None
        return graph.call_function(node.target, args, kwargs)  # type: ignore[arg-type]
