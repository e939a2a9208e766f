# SPDX-License-Identifier: BSD-3-Clause
"""Adds operators in the place of one: of an exported program, or of a lowered one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from etx_exir.ir.constants import fake_mode_of
from etx_exir.ir.equal_values import place_beside
from etx_exir.ir.ops import arguments
from etx_exir.passes.base import propagate
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg

__all__ = ["LoweredWriter", "Writer", "part"]

aten = torch.ops.aten
COPIES = {
    aten.expand.default: aten.expand_copy.default,
    aten.permute.default: aten.permute_copy.default,
    aten.reshape.default: aten.view_copy.default,
    aten.slice.Tensor: aten.slice_copy.Tensor,
    aten.squeeze.dim: aten.squeeze_copy.dim,
    aten.unsqueeze.default: aten.unsqueeze_copy.default,
    aten.view.default: aten.view_copy.default,
}
"""Operators of exported programs in their lowered form."""
EXTREMES = (aten.max.dim, aten.max_pool2d_with_indices.default, aten.min.dim)


class Writer:
    """Adds operators in the place of a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.given = arguments(node)

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add an operator."""
        made: Node = self.node.graph.call_function(target, args, kwargs)
        held = map_arg(args, lambda n: n.meta["val"])
        made.meta = {**self.node.meta, "val": target(*held, **kwargs)}
        made.meta.pop("tensor_meta", None)
        return made

    def parameter(self, held: Node, shape: list[int]) -> Node:
        """Return a parameter of the model in another shape: a constant of its own."""
        made = self.call(aten.view.default, held, shape)
        model = self.node.graph.owning_module
        if held.op != "get_attr" or model is None:
            return made
        name = f"{self.node.name}_{str(held.target).replace('.', '_')}"
        tensor = operator.attrgetter(str(held.target))(model)
        model.register_buffer(name, tensor.detach().reshape(shape))
        named = self.node.graph.get_attr(name)
        named.meta = dict(made.meta)
        self.node.graph.erase_node(made)
        return named

    def done(self, made: Node) -> None:
        """Let a value take the place of the node."""
        self.node.replace_all_uses_with(made)
        self.node.graph.erase_node(self.node)

    def picked(self, made: Node) -> None:
        """Let a value take the place of the first result, the only one that is read."""
        for user in list(self.node.users):
            user.replace_all_uses_with(made)
            self.node.graph.erase_node(user)
        self.node.graph.erase_node(self.node)


class LoweredWriter(Writer):
    """Adds operators of a lowered program, which stay where none of them has a refusal."""

    def __init__(
        self, node: Node, program: ExportedProgram, refusal: Callable[[Node], str | None]
    ) -> None:
        super().__init__(node)
        self.program, self.refusal, self.added = program, refusal, list[Node]()

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Add an operator in its lowered form."""
        if target is aten.mul.Tensor and not isinstance(args[1], Node):
            target = aten.mul.Scalar
        made: Node = self.node.graph.call_function(COPIES.get(target, target), args, kwargs)
        propagate(made, fake_mode_of(self.program))
        place_beside(made, self.node)
        self.added.append(made)
        return made

    def _is_refused(self, made: Node) -> bool:
        if not any(self.refusal(each) for each in self.added):
            user = next(iter(self.node.users)) if self.node.target in EXTREMES else self.node
            made.meta.update({key: item for key, item in user.meta.items() if key != "val"})
            return False
        for each in reversed(self.added):
            self.node.graph.erase_node(each)
        return True

    def done(self, made: Node) -> None:
        """Let a value take the place of the node if all of it is taken."""
        if not self._is_refused(made):
            super().done(made)

    def picked(self, made: Node) -> None:
        """Let a value take the place of the first result if all of it is taken."""
        if not self._is_refused(made):
            super().picked(made)


def part(w: Writer, x: Node, dim: int, begin: int, end: int) -> Node:
    """Return a range of a dimension, or all of it."""
    if begin == 0 and end == x.meta["val"].shape[dim]:
        return x
    return w.call(aten.slice.Tensor, x, dim, begin, end)
