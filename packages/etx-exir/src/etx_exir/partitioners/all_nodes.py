# SPDX-License-Identifier: BSD-3-Clause
"""One partition of everything."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import GraphModule, Node

from etx_exir.delegation.backend import CompileSpec, DelegationSpec
from etx_exir.partitioners.base import GroupPartitioner

__all__ = ["AllNodePartitioner"]


class AllNodePartitioner(GroupPartitioner):
    """Delegates the whole method: what the backend cannot run, it must refuse."""

    def __init__(
        self, backend_id: str, compile_specs: Sequence[CompileSpec] = (), *, own_state: bool = True
    ) -> None:
        super().__init__(DelegationSpec(backend_id, list(compile_specs)), own_state=own_state)

    def groups(self, module: GraphModule) -> list[list[Node]]:
        """Return all nodes that compute something, in one group."""
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        return [nodes] if nodes else []

    def refusal(self, node: Node) -> str | None:
        """Return None: nothing stays out."""
        return None
