# SPDX-License-Identifier: BSD-3-Clause
"""``f(constants)`` -> the constant ``f(constants)``, where the file does not grow for it."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from etx_exir import dim_order
from etx_exir.constants import Constants, fake_mode_of
from etx_exir.nested import graph_modules
from etx_exir.passes.base import Pass

FREE_BYTES = 64 * 1024
"""A result of this size is stored even if nothing shrinks for it."""

KEPT_NAMESPACES = frozenset({"quantized_decomposed", "torchao", "pt2e"})

EMPTY = frozenset(
    {
        dim_order.EMPTY,
        torch.ops.aten.empty.memory_format,
        torch.ops.aten.empty_like.default,
        torch.ops.aten.empty_permuted.default,
        torch.ops.aten.empty_strided.default,
    }
)
"""Their contents are whatever memory held; stored, they are zeros, the same in every run."""


class FoldConstants(Pass):
    """Compute ahead of time what depends on constants alone.

    A result with more elements than the constants it comes from, as of `expand` or `full`, stays
    in the program when it is larger than `FREE_BYTES`; its arguments are folded instead.
    """

    def apply(self, program: ExportedProgram) -> bool:
        self.constants = Constants(program)
        self.values: dict[Node, Any] = {}
        self.leaves: dict[Node, frozenset[Node]] = {}
        self.foldable: dict[Node, None] = {}
        self.mode = fake_mode_of(program)
        changed = False
        for module in graph_modules(program.graph_module):
            if self.constants.reaches(module.graph):
                changed |= self._fold(module)
        return changed

    def _fold(self, module: GraphModule) -> bool:
        graph = self.constants.graph = module.graph
        for node in graph.find_nodes(op="placeholder"):
            tensor = self.constants.get(node)
            if tensor is not None:
                self.values[node] = tensor
                self.leaves[node] = frozenset({node})
        for node in graph.nodes:
            if _is_pure(node) and all(
                arg in self.values or arg in self.foldable for arg in node.all_input_nodes
            ):
                self.foldable[node] = None
        pending = [
            node
            for node in self.foldable
            if node.graph is graph and any(u not in self.foldable for u in node.users)
        ]
        chosen = self._choose(pending)
        results = [(node, self._value(node), self._name(node)) for node in chosen]
        for node, value, name in results:
            node.replace_all_uses_with(self.constants.add(value, name, self.mode))
        if chosen:
            graph.eliminate_dead_code()
        return bool(chosen)

    def _choose(self, pending: list[Node]) -> list[Node]:
        chosen: dict[Node, None] = {}
        seen: set[Node] = set()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node.meta.get("val"), Tensor) and self._fits(node):
                chosen[node] = None
            else:
                pending += [arg for arg in node.all_input_nodes if arg in self.foldable]
        return list(chosen)

    def _fits(self, node: Node) -> bool:
        value = node.meta["val"]
        if any(not isinstance(extent, int) for extent in value.shape):
            return False
        elements = sum(self.values[leaf].numel() for leaf in self._leaves(node))
        return bool(value.numel() <= elements) or value.numel() * value.itemsize <= FREE_BYTES

    def _leaves(self, node: Node) -> frozenset[Node]:
        pending = [node]
        while pending:
            top = pending[-1]
            missing = [arg for arg in top.all_input_nodes if arg not in self.leaves]
            if missing:
                pending += missing
                continue
            pending.pop()
            if top not in self.leaves:
                found = [self.leaves[arg] for arg in top.all_input_nodes]
                self.leaves[top] = frozenset().union(*found)
        return self.leaves[node]

    def _value(self, node: Node) -> Any:
        pending = [node]
        while pending:
            top = pending[-1]
            missing = [arg for arg in top.all_input_nodes if arg not in self.values]
            if missing:
                pending += missing
                continue
            pending.pop()
            if top not in self.values:
                args, kwargs = map_arg((top.args, top.kwargs), self.values.__getitem__)
                with torch.no_grad():
                    target: Any = top.target
                    value = target(*args, **kwargs)
                self.values[top] = value.zero_() if target in EMPTY else value
        value = self.values[node]
        return value.contiguous() if isinstance(value, Tensor) else value

    def _name(self, node: Node) -> str:
        leaves = self._leaves(node)
        if len(leaves) != 1:
            return node.name
        return f"{self.constants.name(next(iter(leaves)))}_{node.name}"


def _is_pure(node: Node) -> bool:
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, OpOverload) or node.target.namespace in KEPT_NAMESPACES:
        return False
    if torch.Tag.nondeterministic_seeded in node.target.tags:
        return False
    return not node.target._schema.is_mutable
