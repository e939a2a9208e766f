# SPDX-License-Identifier: BSD-3-Clause
"""``linear(x, w, b)`` -> ``narrow_linear(x, to(w, bfloat16), b)``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.narrow.operators import NARROW_LINEAR
from etx_exir.narrow.weights import float32_weight, narrowed
from etx_exir.passes.base import NodePass


class NarrowLinear(NodePass):
    """Store the weight in half, and multiply by numbers of bfloat16 where a processor does."""

    targets = (torch.ops.aten.linear.default,)
    makes = frozenset({NARROW_LINEAR})

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        weight = float32_weight(node, self.constants)
        if not isinstance(weight, Tensor):
            return weight
        given: Any = node.args[1]
        name = f"{self.constants.name(given)}_bf16"
        narrow = self.constants.add(narrowed(weight), name, self.mode)
        bias = node.args[2] if len(node.args) > 2 else None
        return graph.call_function(NARROW_LINEAR, (node.args[0], narrow, bias))
