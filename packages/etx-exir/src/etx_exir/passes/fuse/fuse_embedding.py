# SPDX-License-Identifier: BSD-3-Clause
"""``embedding(dequantize(w), i)`` -> ``embedding_byte(w, i)``, of int4 ``embedding_4bit``."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from etx_exir.integer.embeddings import bits_of, packed_embedding, packed_rows
from etx_exir.integer.layout import Layouts
from etx_exir.integer.linear_weights import converted, rows_of
from etx_exir.passes.base import NodePass


class FuseEmbedding(NodePass):
    """Dequantize the rows that are read, not the table; small numbers lie packed in bytes."""

    targets = (torch.ops.aten.embedding.default,)

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        table = node.args[0]
        rows = rows_of(table, self.constants)
        if isinstance(rows, str):
            return None
        layouts = Layouts(self, graph)
        bits = bits_of(rows.low, rows.high, rows.value.shape[1])
        packed = layouts.constant(packed_rows(rows.value, bits), f"{rows.name}_{bits}bit")
        scales = layouts.constant(rows.scales.T.contiguous(), f"{rows.name}_scales")
        bounds = (None, rows.low, rows.high)
        found = layouts.call(packed_embedding(bits), packed, scales, *bounds, node.args[1])
        return converted(node.meta["val"].dtype, found, layouts)
