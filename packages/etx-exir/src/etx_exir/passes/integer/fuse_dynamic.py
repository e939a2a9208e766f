# SPDX-License-Identifier: BSD-3-Clause
"""``linear(dequantize(quantize(x, range of x)), dequantize(w))`` -> ``dynamic_linear(x, w)``,
``convolution`` of the same -> ``dynamic_conv(quantize(x, range of x), w)``, with its clamp."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.integer.clamps import CLAMPS
from etx_exir.integer.dynamic_conv import dynamic_conv, within
from etx_exir.integer.layout import Layouts
from etx_exir.integer.linear_weights import linear_call
from etx_exir.integer.scales import PREFIX, called, ranged
from etx_exir.ir.integer_ops import DYNAMIC_LINEAR, DYNAMIC_LINEAR_INT4
from etx_exir.passes.base import NodePass

LINEAR, CONVOLUTION = torch.ops.aten.linear.default, torch.ops.aten.convolution.default
OF_TENSOR = f"{PREFIX}dequantize_per_tensor.tensor"
PAIRS = {
    OF_TENSOR: f"{PREFIX}quantize_per_tensor.tensor",
    f"{PREFIX}dequantize_per_token.default": f"{PREFIX}quantize_per_token.default",
}
CHOOSE = f"{PREFIX}choose_qparams"


class FuseDynamic(NodePass):
    """Quantize each row as the product reads it, with its own range; images with one for all.

    Where the program takes one range for all rows, or as much of it on both sides of zero, the
    result is the more exact one.
    """

    targets = (LINEAR, CONVOLUTION, *CLAMPS)

    def calls(self, graph: Graph) -> Iterable[Node]:
        """Yield in the order of the graph: what is bounded comes before its bounds."""
        yield from [node for node in graph.nodes if node.target in self.targets]

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        layouts = Layouts(self, graph)
        if node.target in CLAMPS:
            return within(node, layouts)
        quantize = dynamically_quantized(node.args[0])
        if quantize is None:
            return None
        if node.target is LINEAR:
            x: Any = quantize.args[0]
            ops = (DYNAMIC_LINEAR, DYNAMIC_LINEAR_INT4)
            return linear_call(node, x, ops, True, self.constants, layouts)
        if called(node.args[0]) != OF_TENSOR:
            return "the image has a range for each of its rows"
        return dynamic_conv(node, quantize, self.constants, layouts)


def dynamically_quantized(node: Any) -> Node | None:
    """Return what rounds a float tensor to int8 at run time, of which `node` is the float form."""
    quantize: Any = node.args[0] if called(node) in PAIRS else None
    if quantize is None or called(quantize) != PAIRS[called(node)]:
        return None
    scale = quantize.args[1]
    chosen: Any = scale.args[0] if isinstance(scale, Node) and scale.args else None
    if not called(chosen).startswith(CHOOSE) or ranged(chosen) is not quantize.args[0]:
        return None
    if quantize.args[1:3] != node.args[1:3] or torch.int8 not in quantize.args:
        return None
    found: Node = quantize
    return found
