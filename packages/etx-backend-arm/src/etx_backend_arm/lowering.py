# SPDX-License-Identifier: BSD-3-Clause
"""Partition programs for TOSA and lower the partitions: needs the extra ``[aot]``."""

from __future__ import annotations

from collections.abc import Mapping

from etx_exir import (
    BackendDetails,
    CompileSpec,
    DelegationSpec,
    PartitionResult,
    PreprocessResult,
)
from etx_exir.errors import BackendError
from etx_exir.ir.constants import Constants
from etx_exir.partitioners import OperatorSupportPartitioner
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from etx_backend_arm.nodes import TABLE, why_not
from etx_backend_arm.tosa import Graph
from etx_backend_arm.values import DTYPES, Values


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
            if node.op == "placeholder" and values.parameter(node) is None:
                shape, dtype = values.shape(node), DTYPES[node.meta["val"].dtype]
                values.define(node, graph.input(node.name, shape, dtype))
            elif node.op == "call_function":
                TABLE[node.target].emit(values, node)
            elif node.op == "output":
                for result in node.args[0]:
                    graph.output(values.get(result))
        return PreprocessResult(processed_bytes=graph.serialize())


class Support(OperatorSupportBase):
    """Says which nodes of a program have a TOSA form."""

    def __init__(self, program: ExportedProgram) -> None:
        self.constants = Constants(program)

    def is_node_supported(self, submodules: Mapping[str, nn.Module], node: Node) -> bool:
        """Take operators of the table whose weights are constants."""
        return node.op == "call_function" and self.why_not(node) is None

    def why_not(self, node: Node) -> str | None:
        """Return why ``node`` has no TOSA form, or None when it has one."""
        for weight in () if why_not(node) else node.all_input_nodes[1:]:
            if self.constants.get(weight) is None:
                return f"{weight.name} is not a constant"
        return why_not(node)


class TosaPartitioner(OperatorSupportPartitioner):
    """Delegates every connected run of operators that ``nodes.TABLE`` can lower."""

    def __init__(self) -> None:
        super().__init__(DelegationSpec("TosaBackend"), ())

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag the nodes that TOSA has, and the constants that they use."""
        self.support = Support(exported_program)
        return super().partition(exported_program)

    def refusal(self, node: Node) -> str | None:
        """Return the table's reason, which needs no program, or that of the constants."""
        return why_not(node) or super().refusal(node)


def partitioner(compile_specs: list[CompileSpec]) -> TosaPartitioner:
    """Return the partitioner for `etx compile --backend tosa`."""
    if compile_specs:
        raise BackendError(f"TosaBackend takes no options, got {compile_specs[0].key!r}")
    return TosaPartitioner()
