# SPDX-License-Identifier: BSD-3-Clause
"""``cumsum(x, 0)`` -> ``cumsum(x.to(float32), 0).to(float16)`` and the like.

ExecuTorch's kernels add numbers of half precision in half precision, where eager's add in float32.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from etx_exir.ir.dim_order import TO_COPY
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
HALVES = (torch.float16, torch.bfloat16)


class WidenHalves(NodePass):
    """Compute in float32 what adds many halves."""

    targets = (
        aten.addmm.default,
        aten.avg_pool2d.default,
        aten.convolution.default,
        aten.convolution_backward.default,
        aten.cumsum.default,
        aten.native_layer_norm.default,
        aten.scatter_add.default,
        aten.var.correction,
        aten.var.dim,
        aten.var_mean.correction,
    )

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the wide call between conversions."""
        first = next(leaf for leaf in pytree.tree_leaves(node.meta["val"]) if leaf is not None)
        if node.target is aten.addmm.default and node.kwargs.get("beta") == 0:
            return _without_addend(node, graph)
        if first.dtype not in HALVES:
            return None

        def wide(operand: Node) -> Node:
            value = operand.meta["val"]
            if not isinstance(value, Tensor) or value.dtype not in HALVES:
                return operand
            return graph.call_function(TO_COPY, (operand,), {"dtype": torch.float32})

        args, kwargs = pytree.tree_map_only(Node, wide, (list(node.args), dict(node.kwargs)))
        if "dtype" in kwargs:
            kwargs["dtype"] = torch.float32
        call = graph.call_function(node.target, tuple(args), kwargs)  # type: ignore[arg-type]
        if isinstance(node.meta["val"], Tensor):
            return graph.call_function(TO_COPY, (call,), {"dtype": first.dtype})
        for user in list(node.users):
            part = graph.call_function(operator.getitem, (call, user.args[1]))
            narrow = user.meta["val"].dtype
            if narrow in HALVES:
                part = graph.call_function(TO_COPY, (part,), {"dtype": narrow})
            user.replace_all_uses_with(part)
            graph.erase_node(user)
        return call


def _without_addend(node: Node, graph: Graph) -> Node:
    """Return only a product: eager does not read what it multiplies by no part."""
    product: Any = graph.call_function(aten.mm.default, node.args[1:])
    alpha = node.kwargs.get("alpha", 1)
    return product if alpha == 1 else graph.call_function(aten.mul.Scalar, (product, alpha))
