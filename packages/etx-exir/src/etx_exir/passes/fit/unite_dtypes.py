# SPDX-License-Identifier: BSD-3-Clause
"""``cat([x, i])`` -> ``cat([x, i.to(float32)])``, and the like.

ExecuTorch's ``cat`` and ``stack`` mistake numbers of another dtype; the others convert int64 to
halves by way of float32, in which large ones stay finite.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from etx_exir.ir.dim_order import TO_COPY
from etx_exir.passes.base import NodePass

aten = torch.ops.aten


class UniteDtypes(NodePass):
    """Convert operands to the dtype of the result."""

    targets = (
        aten.cat.default,
        aten.stack.default,
        aten.floor_divide.default,
        aten.fmod.Tensor,
        aten.pow.Tensor_Tensor,
        aten.remainder.Tensor,
    )

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the call of operands of one dtype."""
        dtype = node.meta["val"].dtype

        def united(operand: Any) -> Any:
            value = operand.meta["val"]
            if not isinstance(value, Tensor) or value.dtype == dtype:
                return operand
            return graph.call_function(TO_COPY, (operand,), {"dtype": dtype})

        args = pytree.tree_map_only(Node, united, list(node.args))
        if args == list(node.args):
            return None
        return graph.call_function(node.target, tuple(args), dict(node.kwargs))  # type: ignore[arg-type]
