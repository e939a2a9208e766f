# SPDX-License-Identifier: BSD-3-Clause
"""What the partitioners of this folder share: from groups of nodes to tags."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator

from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_exir.delegation.backend import DELEGATION_TAG, DelegationSpec, Partitioner, PartitionResult
from etx_exir.partitioners.duplicates import join_dequantize, split_dequantize
from etx_exir.partitioners.tagging import tag_constant_data, tag_mutated_buffer

__all__ = ["GroupPartitioner", "bodies"]


def bodies(module: GraphModule, node: Node) -> list[GraphModule]:
    """Return the branches or loop bodies that `node` of `module` runs; empty for operators."""
    found = [
        getattr(module, str(arg.target), None)
        for arg in node.all_input_nodes
        if arg.op == "get_attr"
    ]
    return [item for item in found if isinstance(item, GraphModule)]


class GroupPartitioner(Partitioner):
    """Tags the groups of nodes that `groups` finds, in every graph that is not taken as a whole.

    Groups of fewer than `minimum` operators stay out. `preserve` are operators to keep whole,
    `keep` says for which nodes. With `own_state`, buffers that only one partition uses go into it.
    """

    def __init__(
        self,
        spec: DelegationSpec,
        *,
        minimum: int = 1,
        preserve: Iterable[OpOverload] = (),
        keep: Callable[[Node], bool] | None = None,
        own_state: bool = False,
    ) -> None:
        self.delegation_spec = spec
        self.minimum = minimum
        self.preserve = list(preserve)
        self.keep = keep
        self.own_state = own_state
        self._small: dict[Node, int] = {}

    @abstractmethod
    def groups(self, module: GraphModule) -> Iterable[Collection[Node]]:
        """Return the groups of nodes of this graph that become a delegate each."""

    @abstractmethod
    def refusal(self, node: Node) -> str | None:
        """Return why `node` is in no group, or None."""

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the groups, and the constants that they use."""
        split_dequantize(exported_program)
        tags: dict[str, DelegationSpec] = {}
        self._small = {}
        for module in self._graphs(exported_program.graph_module, tags):
            for group in self.groups(module):
                self._tag(group, tags)
        join_dequantize(exported_program)
        tag_constant_data(exported_program)
        if self.own_state:
            tag_mutated_buffer(exported_program)
        return PartitionResult(exported_program, tags)

    def ops_to_not_decompose(
        self, exported_program: ExportedProgram
    ) -> tuple[list[OpOverload], Callable[[Node], bool] | None]:
        """Return `preserve` and `keep`."""
        return self.preserve, self.keep

    def why_not(self, node: Node) -> str | None:
        """Return why `node` is not delegated, or None when it is."""
        if DELEGATION_TAG in node.meta:
            return None
        if node in self._small:
            size = self._small[node]
            return f"its group has {size} operator{'s' * (size > 1)}, fewer than {self.minimum}"
        return self.refusal(node)

    def _graphs(
        self, module: GraphModule, tags: dict[str, DelegationSpec]
    ) -> Iterator[GraphModule]:
        """Yield `module`, then the bodies in it whose node was not taken as a whole."""
        yield module
        for node in module.graph.nodes:
            if node.op == "call_function" and node.meta.get(DELEGATION_TAG) not in tags:
                for body in bodies(module, node):
                    yield from self._graphs(body, tags)

    def _tag(self, group: Collection[Node], tags: dict[str, DelegationSpec]) -> None:
        operators = [node for node in group if hasattr(node.target, "_name")]
        if len(operators) < self.minimum:
            self._small.update(dict.fromkeys(group, len(operators)))
            return
        tag = f"{self.delegation_spec.backend_id}_{len(tags)}"
        tags[tag] = self.delegation_spec
        for node in group:
            node.meta[DELEGATION_TAG] = tag
