# SPDX-License-Identifier: BSD-3-Clause
"""``linear(x, v)``, ``linear(x, w)`` of one row -> the parts of ``linear(x, [v w])``.

One row reads each weight once, at the speed of memory: it is rounded, and threads meet, once for
queries, keys and values, and memory is read in one piece. The parts of a row lie in one piece, so
that they are not copied; those of several rows would be.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from etx_exir.integer.layout import Layouts
from etx_exir.ir.integer_ops import (
    DYNAMIC_LINEAR,
    DYNAMIC_LINEAR_INT4,
    WEIGHT_ONLY_LINEAR,
    WEIGHT_ONLY_LINEAR_INT4,
)
from etx_exir.ir.mutable_state import OTHERS
from etx_exir.ir.ops import SLICE, arguments
from etx_exir.ir.packed_weights import ROWS
from etx_exir.passes.base import NodePass

OPERANDS = ("weight", "weight_sums", "weight_scales", "bias")
WIDTH = "out_features"


class JoinLinears(NodePass):
    """The same numbers. What other layers or methods of the file read too stays, stored once."""

    targets = (
        DYNAMIC_LINEAR,
        DYNAMIC_LINEAR_INT4,
        WEIGHT_ONLY_LINEAR,
        WEIGHT_ONLY_LINEAR_INT4,
    )

    def apply(self, program: ExportedProgram) -> bool:
        if program.graph_module.meta.get(OTHERS, 0):
            return False
        self._parts: dict[Node, tuple[Node, int]] = {}
        return super().apply(program)

    def rewrite(self, node: Node, graph: Graph) -> Node | None:
        if node not in self._parts:
            self._join(node, graph)
        if node not in self._parts:
            return None
        whole, begin = self._parts[node]
        value = node.meta["val"]
        return self.call(graph, SLICE, whole, value.dim() - 1, begin, begin + value.shape[-1])

    def _join(self, first: Node, graph: Graph) -> None:
        """Add the product that `first` and those like it are parts of, where there are any."""
        x = arguments(first)["input"]
        sizes, kind = x.meta["val"].shape, self._kind(first)
        if kind is None or not all(isinstance(size, int) and size == 1 for size in sizes[:-1]):
            return
        users = [u for u in x.users if u.target is first.target and self._kind(u) == kind]
        whole = [user for user in users if _width(user) % ROWS == 0]
        # Blocks that are filled up can only be the last ones.
        alike = whole + [user for user in users if user not in whole][:1]
        if len(alike) < 2 or first not in alike:
            return
        layouts = Layouts(self, graph)
        joined = arguments(first) | {
            key: self._joined([arguments(user)[key] for user in alike], layouts)
            for key in OPERANDS
            if arguments(first).get(key) is not None
        }
        if WIDTH in joined:
            joined[WIDTH] = sum(map(_width, alike))
        product, begin = self.call(graph, first.target, *joined.values()), 0
        for user in alike:
            self._parts[user] = product, begin
            begin += _width(user)

    def _kind(self, node: Node) -> object:
        """Return what linear layers that are joined have in common; None where one stays alone."""
        given = arguments(node)
        operands = {key: given.pop(key) for key in OPERANDS if key in given}
        given.pop(WIDTH, None)
        constants = [item for item in operands.values() if item is not None]
        if any(self.constant(item) is None for item in constants):
            return None
        if len(self.constants.readers(operands["weight"])) > 1:
            return None
        dtypes = [None if item is None else item.meta["val"].dtype for item in operands.values()]
        return [*given.values(), *dtypes]

    def _joined(self, operands: Sequence[Node], layouts: Layouts) -> Node:
        tensors = [tensor for item in operands if (tensor := self.constant(item)) is not None]
        name = f"{self.constants.name(operands[0])}_joined"
        return layouts.constant(torch.cat(tensors), name)


def _width(node: Node) -> int:
    """Return the number of output channels of a linear layer."""
    width: int = node.meta["val"].shape[-1]
    return width
