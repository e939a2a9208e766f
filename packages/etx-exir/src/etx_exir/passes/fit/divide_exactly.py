# SPDX-License-Identifier: BSD-3-Clause
"""``remainder(a, b)`` -> ``a - floor(a / b) * b`` of integers; ``fmod`` is that, or less by ``b``.

ExecuTorch's kernels give integers the remainder of a truncated division, and truncate int64 by way
of float64; floor division by zero is no number there where eager's is one, and a truncated
quotient of halves is not rounded to half before.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.ir.dim_order import CLONE, TO_COPY, dim_order_of
from etx_exir.passes.base import NodePass

aten = torch.ops.aten
REMAINDERS = (aten.remainder.Tensor, aten.remainder.Scalar, aten.fmod.Tensor, aten.fmod.Scalar)
ROUNDED = (aten.floor.default, aten.ceil.default, aten.trunc.default)
HALVES = (torch.float16, torch.bfloat16)


class DivideExactly(NodePass):
    """Spell remainders and rounded quotients with kernels that compute them as eager does."""

    targets = (
        *REMAINDERS,
        aten.floor_divide.default,
        aten.div.Tensor_mode,
        aten.div.Scalar_mode,
        *ROUNDED,
    )

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        """Return the same from quotients, or None where the kernel's result is eager's."""
        exact = not node.meta["val"].is_floating_point()
        if node.target in ROUNDED:
            order = list(dim_order_of(node.meta["val"]))
            return graph.call_function(CLONE, node.args, {"dim_order": order}) if exact else None
        if node.target in REMAINDERS:
            return _remainder(node, graph) if exact else None
        left, right = node.args
        mode: Any = node.kwargs.get("rounding_mode", "floor")
        if exact:
            wide = node.meta["val"].dtype is torch.int64 and mode == "trunc"
            return _truncated(node, graph) if wide else None
        if node.target is aten.div.Scalar_mode:
            zero = mode == "floor" and type(right) in (int, float) and right == 0
            return graph.call_function(aten.div.Scalar, (left, right)) if zero else None
        if node.target is aten.floor_divide.default:
            return _quotient(graph, left, right, "floor")  # is visited, too
        if mode == "floor":
            zeros = graph.call_function(aten.eq.Scalar, (right, 0))
            whole = graph.call_function(aten.div.Tensor, (left, right))
            parts = (zeros, whole, _quotient(graph, left, right, "floor"))
            return graph.call_function(aten.where.self, parts)
        if mode != "trunc" or node.meta["val"].dtype not in HALVES:
            return None
        whole = graph.call_function(aten.div.Tensor, (left, right))
        return graph.call_function(aten.trunc.default, (whole,))


def _remainder(node: Node, graph: Graph) -> Node | None:
    dtype = node.meta["val"].dtype
    floored = node.target in REMAINDERS[:2]
    scalar = node.target in REMAINDERS[1::2]
    if dtype is torch.bool or (dtype is torch.uint8 and floored):
        return None
    if not floored and not scalar and dtype is not torch.int64:
        return None
    left, right, _, rest = _floored(node, graph)
    if floored:
        return rest
    less = graph.call_function(aten.sub.Tensor, (rest, right))
    return graph.call_function(aten.where.self, (_inexact(graph, left, right, rest), less, rest))


def _truncated(node: Node, graph: Graph) -> Node:
    left, right, whole, rest = _floored(node, graph)
    more = graph.call_function(
        TO_COPY, (_inexact(graph, left, right, rest),), {"dtype": torch.int64}
    )
    return graph.call_function(aten.add.Tensor, (whole, more))


def _floored(node: Node, graph: Graph) -> tuple[Node, Node, Node, Node]:
    """Return both operands, their floored quotient and what it leaves."""
    dtype = node.meta["val"].dtype
    left, right = (_tensor(graph, operand, dtype) for operand in node.args[:2])
    whole = _quotient(graph, left, right, "floor")
    taken = graph.call_function(aten.mul.Tensor, (whole, right))
    return left, right, whole, graph.call_function(aten.sub.Tensor, (left, taken))


def _inexact(graph: Graph, left: Node, right: Node, rest: Node) -> Node:
    """Tell where a floored quotient is less than a truncated one."""
    signs = [graph.call_function(aten.lt.Scalar, (operand, 0)) for operand in (left, right)]
    differ = graph.call_function(aten.logical_xor.default, tuple(signs))
    some = graph.call_function(aten.ne.Scalar, (rest, 0))
    return graph.call_function(aten.logical_and.default, (differ, some))


def _quotient(graph: Graph, left: Any, right: Any, mode: str) -> Node:
    return graph.call_function(aten.div.Tensor_mode, (left, right), {"rounding_mode": mode})


def _tensor(graph: Graph, operand: Any, dtype: torch.dtype) -> Node:
    """Return an operand of that dtype; numbers wrap as eager's do."""
    if isinstance(operand, Node) and isinstance(operand.meta["val"], torch.Tensor):
        if operand.meta["val"].dtype == dtype:
            return operand
        return graph.call_function(TO_COPY, (operand,), {"dtype": dtype})
    value = torch.tensor(operand).to(dtype).item() if isinstance(operand, int) else operand
    return graph.call_function(aten.scalar_tensor.default, (value,), {"dtype": dtype})
