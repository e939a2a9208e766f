# SPDX-License-Identifier: BSD-3-Clause
"""``clone(x)``, ``view(x, x.shape)``, ``to(x, x.dtype)``, ``x - 0``, ``x * 1``,
``view_as_real(view_as_complex(x))`` -> ``x``.

Bit by bit: ``x + 0`` stays where x may be -0.0, which it makes +0.0, and a sum, mean or average
over single elements, which does the same, becomes ``x + 0``.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.analysis.shapes import same_shape, same_size
from etx_exir.ir.dim_order import CLONE, TO_COPY
from etx_exir.ir.mutable_state import is_state
from etx_exir.ir.ops import (
    AS_COMPLEX,
    AS_PARTS,
    MOVES_OF,
    PERMUTATIONS,
    SLICE,
    Moves,
    copies,
    permutation,
)
from etx_exir.passes.base import NodePass

aten = torch.ops.aten

SAME = (
    *(op for op, moves in MOVES_OF.items() if moves is Moves.SAME),
    aten.clone.default,
    aten.contiguous.default,
    aten.dropout.default,
    aten.feature_dropout.default,
    aten.lift_fresh.default,
    CLONE,
    TO_COPY,
    aten._to_copy.default,
    aten.to.dtype,
)
SHAPES = (
    *copies(Moves.RESHAPE, Moves.EXPAND, Moves.SLICE),
    aten.constant_pad_nd.default,
    aten.repeat.default,
)
SUMS = (aten.avg_pool2d.default, aten.mean.dim, aten.sum.dim_IntList)
ADD = aten.add.Scalar
FACTORS = (aten.mul.Scalar, aten.div.Scalar, aten.pow.Tensor_Scalar)
TERMS = (ADD, aten.sub.Scalar)
INVERSE = {AS_PARTS: AS_COMPLEX, AS_COMPLEX: AS_PARTS}
KEPT = "the copy holds the value from before a write"


class RemoveNoops(NodePass):
    """Drop operators that return their input, unless the copy protects it from a later write."""

    targets = (
        *SAME,
        *SHAPES,
        *SUMS,
        *FACTORS,
        *TERMS,
        *PERMUTATIONS,
        *INVERSE,
        aten.cat.default,
    )

    def rewrite(self, node: Node, graph: Graph) -> Node | str | None:
        source = node.args[0]
        if node.target is aten.cat.default:
            tensors: Any = source
            source = tensors[0] if len(tensors) == 1 else None
        elif node.target in INVERSE and isinstance(source, Node):
            source = source.args[0] if source.target is INVERSE[node.target] else None
        if not isinstance(source, Node) or not self._is_noop(node, source):
            return None
        if node.target in SUMS and source.meta["val"].is_floating_point():
            return graph.call_function(ADD, (source, 0))
        return KEPT if is_state(source, self.program) else source

    def _is_noop(self, node: Node, source: Node) -> bool:
        before, after = source.meta["val"], node.meta["val"]
        if before.dtype != after.dtype or not same_shape(before, after):
            return False
        if node.target in TERMS:
            return _adds_nothing(node, before)
        if node.target in FACTORS:
            return type(node.args[1]) in (int, float) and bool(node.args[1] == 1)
        if node.target in PERMUTATIONS:
            return permutation(node) == list(range(before.dim()))
        if node.target in (aten.mean.dim, aten.sum.dim_IntList):
            dims: Any = node.args[1] or range(before.dim())
            return not before.dim() or all(same_size(before.shape[dim], 1) for dim in dims)
        if node.target is aten.avg_pool2d.default:
            window: Any = node.args[1:3]
            plain = window in (([1, 1],), ([1, 1], [1, 1]), ([1, 1], []))
            given = node.args[6] if len(node.args) > 6 else node.kwargs.get("divisor_override")
            return plain and given in (None, 1)
        if node.target is SLICE:
            return len(node.args) < 5 or bool(node.args[4] == 1)
        if node.target is aten.constant_pad_nd.default:
            pads: Any = node.args[1]
            return not any(pads)
        strides = zip(before.stride(), after.stride(), strict=True)
        return node.target in (*SHAPES, *INVERSE) or all(same_size(*pair) for pair in strides)


def _adds_nothing(node: Node, before: torch.Tensor) -> bool:
    """Whether a sum or difference with a number is its tensor, signs of zeros included."""
    term, alpha = node.args[1], node.args[2] if len(node.args) > 2 else 1
    if type(term) not in (int, float) or type(alpha) not in (int, float):
        return False
    added: Any = term * alpha  # type: ignore[operator]
    if added != 0:
        return False
    if not before.is_floating_point() and not before.is_complex():
        return True
    negative = math.copysign(1, added) < 0
    return negative if node.target is ADD else not negative
