# SPDX-License-Identifier: BSD-3-Clause
"""``linear(dequantize(quantize(x, range of x)), dequantize(w))`` -> ``dynamic_linear(x, w)``."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.integer.layout import Layouts
from etx_exir.integer.linear_weights import linear_call
from etx_exir.integer.scales import PREFIX, called, ranged
from etx_exir.ir.integer_ops import DYNAMIC_LINEAR, DYNAMIC_LINEAR_INT4
from etx_exir.passes.base import NodePass

PAIRS = {
    f"{PREFIX}dequantize_per_tensor.tensor": f"{PREFIX}quantize_per_tensor.tensor",
    f"{PREFIX}dequantize_per_token.default": f"{PREFIX}quantize_per_token.default",
}
CHOOSE = f"{PREFIX}choose_qparams"


class FuseDynamic(NodePass):
    """Quantize each row as the product reads it, with its own range.

    Where the program takes one range for all rows, or as much of it on both sides of zero, the
    result is the more exact one.
    """

    targets = (torch.ops.aten.linear.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        x = dynamically_quantized(node.args[0])
        if x is None:
            return None
        layouts = Layouts(self, graph)
        ops = (DYNAMIC_LINEAR, DYNAMIC_LINEAR_INT4)
        return linear_call(node, x, ops, True, self.constants, layouts)


def dynamically_quantized(node: Any) -> Node | None:
    """Return the float tensor of which `node` is the form rounded to int8 at run time."""
    quantize: Any = node.args[0] if called(node) in PAIRS else None
    if quantize is None or called(quantize) != PAIRS[called(node)]:
        return None
    scale = quantize.args[1]
    chosen: Any = scale.args[0] if isinstance(scale, Node) and scale.args else None
    if not called(chosen).startswith(CHOOSE) or ranged(chosen) is not quantize.args[0]:
        return None
    if quantize.args[1:3] != node.args[1:3] or torch.int8 not in quantize.args:
        return None
    x: Node = quantize.args[0]
    return x
