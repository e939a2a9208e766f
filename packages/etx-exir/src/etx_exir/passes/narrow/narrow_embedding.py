# SPDX-License-Identifier: BSD-3-Clause
"""``embedding(w, i)`` -> ``to(embedding(to(w, bfloat16), i), float32)``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import TO_COPY
from etx_exir.narrow.weights import EMBEDDING, float32_weight, narrowed
from etx_exir.passes.base import NodePass


class NarrowEmbedding(NodePass):
    """Store the rows in half; those that are read are float32 again."""

    targets = (EMBEDDING,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        weight = float32_weight(node, self.constants)
        if not isinstance(weight, Tensor):
            return weight
        given: Any = node.args[0]
        name = f"{self.constants.name(given)}_bf16"
        narrow = self.constants.add(narrowed(weight), name, self.mode)
        rows = graph.call_function(EMBEDDING, (narrow, *node.args[1:]), node.kwargs)
        self.propagate(rows)
        return graph.call_function(TO_COPY, (rows,), {"dtype": torch.float32})
