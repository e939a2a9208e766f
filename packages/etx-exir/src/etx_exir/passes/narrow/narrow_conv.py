# SPDX-License-Identifier: BSD-3-Clause
"""``convolution(x, w, b, ...)`` -> ``narrow_conv(x, to(w, bfloat16), b, ...)``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.narrow.operators import NARROW_CONV
from etx_exir.narrow.weights import float32_weight, narrowed
from etx_exir.passes.base import NodePass

LARGEST_REACH = 16


class NarrowConv(NodePass):
    """Store the weight in half, the channels that are summed innermost."""

    targets = (torch.ops.aten.convolution.default,)
    makes = frozenset({NARROW_CONV})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        x: Any = node.args[0]
        given: Any = node.args[1]
        weight = float32_weight(node, self.constants)
        if not isinstance(weight, Tensor):
            return weight
        stride, padding, dilation, transposed, _, groups = node.args[3:9]
        if transposed:
            return "it is transposed: its sums are not over neighbours in memory"
        if weight.shape[1] < 2:
            return "each of its sums has one channel: to read it takes longer than its products"
        if not _is_near(x.meta["val"].shape[2:], weight.shape[2:], padding, dilation):
            return "its kernel reaches far beyond the image"
        name = f"{self.constants.name(given)}_bf16"
        narrow = self.constants.add(narrowed(weight, True), name, self.mode)
        window = (list(stride), list(padding), list(dilation), groups)  # type: ignore[arg-type]
        return graph.call_function(NARROW_CONV, (x, narrow, node.args[2], *window))


def _is_near(image: Any, kernel: Any, padding: Any, dilation: Any) -> bool:
    """Tell whether the image with its border is not much larger than what is read of it."""
    for i, size in enumerate(image):
        reach = dilation[i % len(dilation)] * (kernel[i] - 1)
        is_fixed = isinstance(size, int)
        if not is_fixed and len(kernel) > 2:
            return False
        if reach > max(size if is_fixed else 0, LARGEST_REACH) or padding[i % len(padding)] > reach:
            return False
    return True
