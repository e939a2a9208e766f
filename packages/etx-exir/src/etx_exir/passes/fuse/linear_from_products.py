# SPDX-License-Identifier: BSD-3-Clause
"""``mm(x, w^T)`` -> ``linear(x, w)``, ``addmm(b, x, w^T)`` -> ``linear(x, w, b)``: the kernel of
``linear`` reads its weight transposed, so that nothing needs to do it."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.ir.layout import same_sizes
from etx_exir.ir.ops import PERMUTATIONS, permutation
from etx_exir.passes.base import NodePass

aten = torch.ops.aten

MM = aten.mm.default
ADDMM = aten.addmm.default
LINEAR = aten.linear.default


class LinearFromProducts(NodePass):
    """Read the weight as it is stored: nothing transposes it, neither now nor at run time."""

    targets = (MM, ADDMM)
    makes = frozenset({LINEAR})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        left, right = node.args[-2:]
        if not isinstance(right, Node) or right.target not in PERMUTATIONS:
            return None
        weight = right.args[0]
        if right.meta["val"].dim() != 2 or permutation(right) != [1, 0]:
            return None
        if self.constant(weight) is None and len(right.users) > 1:
            return "another operator reads the transposed matrix, which is computed"
        if node.target is MM:
            return graph.call_function(LINEAR, (left, weight))
        bias = node.args[0]
        assert isinstance(bias, Node)
        if any(node.kwargs.get(name, 1) != 1 for name in ("alpha", "beta")):
            return "alpha or beta is not 1"
        if not same_sizes(bias.meta["val"].shape, right.meta["val"].shape[1:]):
            return "the bias is not one number for each row of the weight"
        return graph.call_function(LINEAR, (left, weight, bias))
