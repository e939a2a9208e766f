# SPDX-License-Identifier: BSD-3-Clause
"""``f(x)`` -> ``to(f(to_rows(x)), order)`` where ``f`` takes rows, and ``x`` lies otherwise."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Graph, Node

from etx_exir.integer.scales import PREFIX, called
from etx_exir.ir.dim_order import TO_COPY, dim_order_of
from etx_exir.ir.integer_ops import NAMESPACE
from etx_exir.passes.base import NodePass

ANY_ORDER = "per_tensor", "choose_qparams.tensor", "choose_qparams_symmetric.tensor"


class AlignRows(NodePass):
    """Give integer operators, and those that quantize by row, tensors that lie in rows.

    Inputs of a model may be channels last, or transposed; elementwise kernels take any order.
    """

    def calls(self, graph: Graph) -> Iterable[Node]:
        """Yield the operators that take rows alone."""
        return [node for node in graph.nodes if _takes_rows(node)]

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the call between copies, None where all lies in rows."""
        if not _others(node.all_input_nodes) and not _others([node]):
            return None

        def lined(operand: Node) -> Node:
            return self._copied(graph, operand) if _others([operand]) else operand

        call = graph.node_copy(node, lined)
        self.propagate(call)
        return self._copied(graph, call, node) if _others([node]) else call

    def _copied(self, graph: Graph, source: Node, like: Node | None = None) -> Node:
        """Return `source` in rows, or in the order of `like`."""
        rank = source.meta["val"].dim()
        order = range(rank) if like is None else dim_order_of(like.meta["val"])
        copy = graph.call_function(TO_COPY, (source,), {"dim_order": list(order)})
        self.propagate(copy)
        return copy


def _takes_rows(node: Node) -> bool:
    if not isinstance(node.target, OpOverload):
        return False
    of_rows = called(node).startswith(PREFIX) and not any(n in called(node) for n in ANY_ORDER)
    return of_rows or node.target.namespace == NAMESPACE


def _others(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes of one tensor that does not lie in rows."""
    return [
        node
        for node in nodes
        if isinstance(value := node.meta.get("val"), Tensor)
        if dim_order_of(value) != tuple(range(value.dim()))
    ]
