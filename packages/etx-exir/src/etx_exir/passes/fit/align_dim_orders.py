# SPDX-License-Identifier: BSD-3-Clause
"""``add(x, y)`` -> ``to(add(to_rows(x), y), channels_last)`` where a kernel has no such form.

ExecuTorch's kernels take tensors of one dim order, or only in rows.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from etx_schema.targets.rows import CHANNELS_LAST, fits_layout, in_rows, layout_of
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from etx_exir.errors import LoweringError
from etx_exir.ir.dim_order import TO_COPY, dim_order_of
from etx_exir.ir.out_variants import out_variant
from etx_exir.passes.base import NodePass


class AlignDimOrders(NodePass):
    """Compute in rows what the target's kernel does not compute in the order of its operands."""

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self.rows = rows

    def apply(self, program: ExportedProgram) -> bool:
        """Align all calls of a program whose inputs the runtime takes."""
        given = program.graph_signature.user_inputs
        for node in program.graph.find_nodes(op="placeholder"):
            for order in _orders(node.meta.get("val")) if node.name in given else ():
                if order != CHANNELS_LAST and not in_rows(order):
                    raise LoweringError(
                        f"input {node.name!r} has dim order {list(order)}, and ExecuTorch's "
                        "runtime takes inputs that are contiguous or channels last; export with "
                        "`.contiguous()` ones"
                    )
        return super().apply(program)

    def calls(self, graph: Graph) -> Iterable[Node]:
        """Yield the calls of operators."""
        return [node for node in graph.nodes if isinstance(node.target, OpOverload)]

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the call in rows between copies, None where the kernel takes it."""
        inputs = [_orders(each.meta.get("val")) for each in node.all_input_nodes]
        orders = [*(order for each in inputs for order in each), *_orders(node.meta["val"])]
        if all(map(in_rows, orders)) or fits_layout(self._layout(node), orders):
            return None

        def lined(operand: Node) -> Node:
            if all(map(in_rows, _orders(operand.meta.get("val")))):
                return operand
            copy = _copied(graph, operand, range(operand.meta["val"].dim()))
            self.propagate(copy)
            return copy

        args, kwargs = pytree.tree_map_only(Node, lined, (list(node.args), dict(node.kwargs)))
        kwargs.pop("memory_format", None)
        call = graph.call_function(node.target, tuple(args), kwargs)  # type: ignore[arg-type]
        self.propagate(call)
        if isinstance(node.meta["val"], Tensor):
            return _as_before(graph, call, node)
        for user in list(node.users):
            part = graph.call_function(operator.getitem, (call, user.args[1]))
            self.propagate(part)
            user.replace_all_uses_with(_as_before(graph, part, user))
            graph.erase_node(user)
        return call

    def _layout(self, node: Node) -> str | None:
        variant = out_variant(node.target) if isinstance(node.target, OpOverload) else None
        return None if variant is None else layout_of(self.rows.get(variant.key, {}))


def _as_before(graph: Graph, call: Node, node: Node) -> Node:
    order = dim_order_of(node.meta["val"])
    return _copied(graph, call, order) if order == CHANNELS_LAST else call


def _copied(graph: Graph, source: Node, order: Iterable[int]) -> Node:
    return graph.call_function(TO_COPY, (source,), {"dim_order": list(order)})


def _orders(value: Any) -> list[tuple[int, ...]]:
    leaves = pytree.tree_leaves(value)
    return [dim_order_of(leaf) for leaf in leaves if isinstance(leaf, Tensor)]
