# SPDX-License-Identifier: BSD-3-Clause
"""``x ** 2`` -> ``x * x``, ``x ** 0.5`` -> ``sqrt(x)``, ``x ** -0.5`` -> ``rsqrt(x)``,
``x ** -1`` -> ``1 / x``."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass

aten = torch.ops.aten

UNARY = {0.5: aten.sqrt.default, -0.5: aten.rsqrt.default, -1.0: aten.reciprocal.default}


class ExpandPowers(NodePass):
    """Name the powers that have a faster operator."""

    targets = (aten.pow.Tensor_Scalar,)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        base, exponent = node.args
        if not isinstance(base, Node) or type(exponent) not in (int, float):
            return None
        if base.meta["val"].dtype != node.meta["val"].dtype:
            return None
        if exponent == 2:
            return graph.call_function(aten.mul.Tensor, (base, base))
        target = UNARY.get(float(exponent))  # type: ignore[arg-type]
        if target is None or not base.meta["val"].is_floating_point():
            return None
        return graph.call_function(target, (base,))
