# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of all nodes that a backend says it can run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any

from torch.fx import GraphModule, Node
from torch.fx.passes.operator_support import OperatorSupportBase

from etx_exir.delegation.backend import DelegationSpec
from etx_exir.partitioners.base import GroupPartitioner, bodies
from etx_exir.partitioners.grouping import group_nodes

__all__ = ["OperatorSupportPartitioner", "Support"]

Support = OperatorSupportBase | Collection[Any] | Callable[[Node], bool]


class OperatorSupportPartitioner(GroupPartitioner):
    """Delegates every connected run of nodes that `support` accepts.

    `support` is a collection of operators, a function from a node to bool, or an object with
    `is_node_supported(submodules, node)`; where it has `why_not(node)`, that is what `--explain`
    prints. Control flow goes in as a whole when its operator and all of its bodies are supported;
    else its bodies are partitioned. `fits(source, node)` says whether `node` may be in the
    partition of its argument `source`. Other options: those of `GroupPartitioner`.
    """

    def __init__(
        self,
        spec: DelegationSpec,
        support: Support,
        *,
        fits: Callable[[Node, Node], bool] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(spec, **options)
        self.support = support
        self.fits = fits

    def groups(self, module: GraphModule) -> list[list[Node]]:
        """Return the groups of supported nodes that no cycle prevents."""
        submodules = dict(module.named_modules())
        return group_nodes(
            module.graph,
            lambda node: self._is_supported(module, submodules, node),
            fits=self.fits,
        )

    def refusal(self, node: Node) -> str | None:
        """Return the reason of `support` where it gives one."""
        explain = getattr(self.support, "why_not", None)
        if explain is not None:
            reason: str | None = explain(node)
            return reason
        if not self._accepts({}, node):
            return f"{node.target} is not supported"
        return "something in one of its bodies is not supported" if _runs_bodies(node) else None

    def _is_supported(self, module: GraphModule, submodules: Any, node: Node) -> bool:
        if not self._accepts(submodules, node):
            return False
        return all(
            inner.target is operator.getitem or self._is_supported(body, submodules, inner)
            for body in bodies(module, node)
            for inner in body.graph.nodes
            if inner.op == "call_function"
        )

    def _accepts(self, submodules: Any, node: Node) -> bool:
        if isinstance(self.support, OperatorSupportBase):
            return bool(self.support.is_node_supported(submodules, node))
        if isinstance(self.support, Collection):
            return node.target in self.support
        return bool(self.support(node))


def _runs_bodies(node: Node) -> bool:
    return any(arg.op == "get_attr" for arg in node.all_input_nodes)
