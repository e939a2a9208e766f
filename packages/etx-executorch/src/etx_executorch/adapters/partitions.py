# SPDX-License-Identifier: BSD-3-Clause
"""Partitions of a graph in ExecuTorch's forms, and delegation of several methods at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import etx_exir
from etx_exir.ir.constants import Constants
from etx_exir.partitioners import group_nodes
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher

__all__ = [
    "DontPartition",
    "DontPartitionName",
    "GroupBasedPartitioner",
    "MethodProgramsPartitionerSpec",
    "duplicate_constant_node",
    "generate_grouped_partitions_from_list_of_nodes",
    "generate_partitions_from_list_of_nodes",
    "generate_pattern_op_partitions",
    "to_backend",
]


class _OneOf(OperatorSupportBase):
    """Supports the nodes of the lists, and what another support takes."""

    def __init__(
        self, lists: Sequence[Collection[Node]], other: OperatorSupportBase | None
    ) -> None:
        self.nodes = {node for nodes in lists for node in nodes}
        self.other = other

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Tell whether the node is in a list or the other support takes it."""
        if node in self.nodes:
            return True
        return self.other is not None and self.other.is_node_supported(submodules, node)


class GroupBasedPartitioner:
    """Partitions in which the nodes of each group stay together, without a cycle."""

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        node_groups: Sequence[Sequence[Node]] | None = None,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = set(non_compute_ops or ())
        self.allowed_single_node_partition_ops = set(allowed_single_node_partition_ops or ())
        self.node_groups = [list(group) for group in node_groups or ()]

    def propose_partitions(self) -> list[Partition]:
        """Return the partitions, in the order of the graph."""
        submodules = dict(self.graph_module.named_modules())
        support = self.operator_support
        together = [
            group
            for group in self.node_groups
            if all(support.is_node_supported(submodules, node) for node in group)
        ]
        groups = group_nodes(
            self.graph_module.graph,
            lambda node: support.is_node_supported(submodules, node),
            together,
        )
        kept = [nodes for nodes in groups if self._is_worth_it(nodes)]
        return [Partition(id=index, nodes=nodes) for index, nodes in enumerate(kept)]

    def _is_worth_it(self, nodes: list[Node]) -> bool:
        names = [str(n.target) for n in nodes if "getitem" not in str(n.target)]
        computing = [name for name in names if name not in self.non_compute_ops]
        if self.allows_single_node_partition or len(computing) > 1:
            return True
        return bool(set(computing) & self.allowed_single_node_partition_ops)


def generate_partitions_from_list_of_nodes(
    graph_module: GraphModule,
    pattern_list: Sequence[Sequence[Node]] | None = None,
    op_support: OperatorSupportBase | None = None,
) -> list[Partition]:
    """Partition the nodes of the lists, and those that `op_support` takes."""
    return list(
        CapabilityBasedPartitioner(
            graph_module,
            _OneOf(pattern_list or (), op_support),
            allows_single_node_partition=True,
        ).propose_partitions()
    )


def generate_grouped_partitions_from_list_of_nodes(
    graph_module: GraphModule,
    pattern_list: Sequence[Sequence[Node]] | None = None,
    op_support: OperatorSupportBase | None = None,
) -> list[Partition]:
    """Partition as `generate_partitions_from_list_of_nodes`, the nodes of a list together."""
    groups = pattern_list or ()
    support = _OneOf(groups, op_support)
    return GroupBasedPartitioner(
        graph_module, support, allows_single_node_partition=True, node_groups=groups
    ).propose_partitions()


def generate_pattern_op_partitions(
    graph_module: GraphModule,
    patterns: Sequence[Graph] | None = None,
    partitions_list: Sequence[Sequence[Node]] | None = None,
    op_support: OperatorSupportBase | None = None,
    ignore_literals: bool = False,
) -> list[Partition]:
    """Partition what the patterns match, the nodes of the lists, and what `op_support` takes."""
    lists = [list(nodes) for nodes in partitions_list or ()]
    for pattern in patterns or ():
        matcher = SubgraphMatcher(pattern, ignore_literals=ignore_literals)
        lists += [
            [n for n in match.nodes_map.values() if n.op == "call_function"]
            for match in matcher.match(graph_module.graph)
        ]
    return generate_partitions_from_list_of_nodes(graph_module, lists, op_support)


class DontPartition(OperatorSupportBase):
    """Refuses the nodes whose operator is named."""

    def __init__(self, *targets: str, exact: bool = True) -> None:
        self.targets, self.exact = targets, exact

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Tell whether no target is that of the node."""
        return not self._is_named(str(node.target))

    def _is_named(self, name: str) -> bool:
        return any(each == name if self.exact else each in name for each in self.targets)


class DontPartitionName(DontPartition):
    """Refuses the nodes that are named."""

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Tell whether no name is that of the node."""
        return not self._is_named(node.name)


def duplicate_constant_node(ep: ExportedProgram, candidate_node: str) -> set[str]:
    """Give each reader of a constant but the first one of its own, in place; return their names."""
    constants = Constants(ep)
    (node,) = (n for n in ep.graph.nodes if n.op == "placeholder" and n.name == candidate_node)
    tensor = constants.get(node)
    if tensor is None:
        raise ValueError(f"{candidate_node} is not a constant of the program")
    copies = set()
    for index, user in enumerate(list(node.users)[1:]):
        copy = constants.add(tensor, f"{candidate_node}_copy_{index}")
        user.replace_input_with(node, copy)
        copies.add(copy.name)
    ep.graph_module.recompile()
    return copies


@dataclass
class MethodProgramsPartitionerSpec:
    """Programs and partitioners by method name."""

    method_to_edge_program: Mapping[str, ExportedProgram]
    method_to_partitioner: Any


def to_backend(first: Any, *rest: Any) -> Any:
    """Lower as ETX does; programs of several methods may come with their partitioners."""
    if isinstance(first, MethodProgramsPartitionerSpec):
        rest = (first.method_to_partitioner,)
        first = first.method_to_edge_program
    return etx_exir.to_backend(first, *rest)
