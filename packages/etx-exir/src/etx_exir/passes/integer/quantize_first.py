# SPDX-License-Identifier: BSD-3-Clause
"""``quantize(move(f(x)))`` -> ``quantize(move(dequantize(quantize(f(x)))))``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.integer.layout import Layouts
from etx_exir.integer.scales import DEQUANTIZE, QUANTIZE, called
from etx_exir.ir.ops import PERMUTATIONS, RESHAPES
from etx_exir.passes.base import NodePass

MOVES = (*RESHAPES, *PERMUTATIONS)


class QuantizeFirst(NodePass):
    """Quantize a result where it is made: `FuseQuantized` looks for its operator there.

    Pools over one dimension are such: they are pools over two between views. That the integers are
    quantized again does not change them, and makes them move as others do.
    """

    def calls(self, graph: Graph) -> Iterable[Node]:
        yield from [node for node in graph.nodes if called(node) == QUANTIZE]

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        moves: list[Node] = []
        source: Any = node.args[0]
        while source.target in MOVES and len(source.users) == 1:
            moves.append(source)
            source = source.args[0]
        if not moves or called(source) in ("", DEQUANTIZE):
            return None
        layouts = Layouts(self, graph)
        layouts.origin = node
        integers = layouts.call(node.target, source, *node.args[1:])
        dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default
        result = layouts.call(dequantize, integers, *node.args[1:])
        for move in reversed(moves):
            result = layouts.call(move.target, result, *move.args[1:], **move.kwargs)
        quantize: Any = node.target
        return graph.call_function(quantize, (result, *node.args[1:]))
