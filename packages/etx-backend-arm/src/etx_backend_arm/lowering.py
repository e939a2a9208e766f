# SPDX-License-Identifier: BSD-3-Clause
"""Partition programs for TOSA and lower the partitions: needs the extra ``[aot]``."""

from __future__ import annotations

from collections.abc import Mapping

from etx_exir.backend import (
    DELEGATION_TAG,
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
)
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from etx_backend_arm.nodes import TABLE, why_not
from etx_backend_arm.tosa import Graph
from etx_backend_arm.values import DTYPES, Values, constant_of


class TosaBackend(BackendDetails):
    """Lowers a partition to a TOSA 1.0 file; inputs and outputs keep the program's layout."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the TOSA flatbuffer of ``edge_program``."""
        graph = Graph()
        values = Values(graph, edge_program)
        for node in edge_program.graph.nodes:
            if node.op == "placeholder" and constant_of(edge_program, node) is None:
                shape, dtype = values.shape(node), DTYPES[node.meta["val"].dtype]
                values.define(node, graph.input(node.name, shape, dtype))
            elif node.op == "call_function":
                TABLE[node.target].emit(values, node)
            elif node.op == "output":
                for result in node.args[0]:
                    graph.output(values.get(result))
        return PreprocessResult(processed_bytes=graph.serialize())


class Support(OperatorSupportBase):
    """Tells torch's partitioner which nodes of a program have a TOSA form."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Take operators of the table whose weights are constants."""
        if node.op != "call_function" or why_not(node) is not None:
            return False
        return all(constant_of(self.program, n) is not None for n in node.all_input_nodes[1:])


class TosaPartitioner(Partitioner):
    """Delegates every connected run of operators that ``nodes.TABLE`` can lower."""

    def __init__(self) -> None:
        self.spec = DelegationSpec("TosaBackend")

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag nodes, and the constants that only one partition uses."""
        finder = CapabilityBasedPartitioner(
            exported_program.graph_module,
            Support(exported_program),
            allows_single_node_partition=True,
        )
        specs = {}
        for i, partition in enumerate(finder.propose_partitions()):
            tag = f"tosa_{i}"
            specs[tag] = self.spec
            for node in partition.nodes:
                node.meta[DELEGATION_TAG] = tag
        for node in exported_program.graph.nodes:
            tags = {user.meta.get(DELEGATION_TAG) for user in node.users}
            if (
                constant_of(exported_program, node) is not None
                and len(tags) == 1
                and None not in tags
            ):
                node.meta[DELEGATION_TAG] = tags.pop()
        return PartitionResult(exported_program, specs)

    def why_not(self, node: Node) -> str | None:
        """Return why ``node`` is not delegated, or None when it is."""
        return None if DELEGATION_TAG in node.meta else why_not(node)
