# SPDX-License-Identifier: BSD-3-Clause
"""``mul.Tensor(x, 3)``, ``mul.Tensor(x, tensor(3.))`` -> ``mul.Scalar(x, 3)``.

Only where both promote to the same dtype: an integer tensor times ``tensor(3., float64)`` is
float64, times the number 3.0 it is float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, Node

from etx_exir.passes.base import NodePass

aten = torch.ops.aten

SCALAR = {
    aten.add.Tensor: aten.add.Scalar,
    aten.bitwise_and.Tensor: aten.bitwise_and.Scalar,
    aten.bitwise_left_shift.Tensor: aten.bitwise_left_shift.Tensor_Scalar,
    aten.bitwise_or.Tensor: aten.bitwise_or.Scalar,
    aten.bitwise_right_shift.Tensor: aten.bitwise_right_shift.Tensor_Scalar,
    aten.bitwise_xor.Tensor: aten.bitwise_xor.Scalar,
    aten.div.Tensor: aten.div.Scalar,
    aten.div.Tensor_mode: aten.div.Scalar_mode,
    aten.eq.Tensor: aten.eq.Scalar,
    aten.fmod.Tensor: aten.fmod.Scalar,
    aten.ge.Tensor: aten.ge.Scalar,
    aten.gt.Tensor: aten.gt.Scalar,
    aten.le.Tensor: aten.le.Scalar,
    aten.lt.Tensor: aten.lt.Scalar,
    aten.mul.Tensor: aten.mul.Scalar,
    aten.ne.Tensor: aten.ne.Scalar,
    aten.pow.Tensor_Tensor: aten.pow.Tensor_Scalar,
    aten.remainder.Tensor: aten.remainder.Scalar,
    aten.sub.Tensor: aten.sub.Scalar,
}
COMMUTATIVE = frozenset(
    {
        aten.add.Tensor,
        aten.bitwise_and.Tensor,
        aten.bitwise_or.Tensor,
        aten.bitwise_xor.Tensor,
        aten.eq.Tensor,
        aten.mul.Tensor,
        aten.ne.Tensor,
    }
)


class ScalarOperands(NodePass):
    """Keep numbers as numbers: no tensor holds them and nothing casts them at run time."""

    targets = tuple(SCALAR)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        left, right = node.args[:2]
        scalar = self._scalar(right, left)
        if scalar is None and node.target in COMMUTATIVE and "alpha" not in node.kwargs:
            left, scalar = right, self._scalar(left, right)
        if scalar is None:
            return None
        target = SCALAR[node.target]  # type: ignore[index]
        kwargs = dict(node.kwargs)
        args: tuple[Any, ...] = (left, scalar)
        if "alpha" in kwargs:
            args = (*args, kwargs.pop("alpha"))
        return graph.call_function(target, args, kwargs)

    def _scalar(self, operand: Any, other: Any) -> Any:
        """Return the number `operand` stands for, if it promotes with `other` as a number does."""
        if not isinstance(other, Node) or not isinstance(other.meta["val"], torch.Tensor):
            return None
        if not isinstance(operand, Node):
            return operand
        if isinstance(operand.meta["val"], torch.SymInt | torch.SymFloat | torch.SymBool):
            return operand
        value = self.constant(operand)
        if self.constants.is_parameter(operand):
            return None
        if value is None or value.dim() or not other.meta["val"].dim() or value.is_complex():
            return None
        number = value.item()
        like = torch.empty(1, dtype=other.meta["val"].dtype)
        dtype = torch.result_type(like, value)
        if dtype != torch.result_type(like, number):
            return None
        if not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool:
            limits = torch.iinfo(dtype)
            return number if limits.min <= number <= limits.max else None
        return number
