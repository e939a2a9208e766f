# SPDX-License-Identifier: BSD-3-Clause
"""``linear(x, dequantize(w), b)`` -> ``weight_only_linear(x, w, b)``."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.integer.layout import Layouts
from etx_exir.integer.linear_weights import linear_call, matrix_of
from etx_exir.ir.integer_ops import WEIGHT_ONLY_LINEAR, WEIGHT_ONLY_LINEAR_INT4
from etx_exir.passes.base import NodePass


class FuseWeights(NodePass):
    """Read quantized weights where they lie, instead of their float form from planned memory."""

    targets = (torch.ops.aten.linear.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        x = node.args[0]
        assert isinstance(x, Node)
        if isinstance(matrix_of(node.args[1], self.constants), str):
            return None
        layouts = Layouts(self, graph)
        ops = (WEIGHT_ONLY_LINEAR, WEIGHT_ONLY_LINEAR_INT4)
        return linear_call(node, x, ops, False, self.constants, layouts)
