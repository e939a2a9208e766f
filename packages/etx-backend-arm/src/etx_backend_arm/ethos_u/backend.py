# SPDX-License-Identifier: BSD-3-Clause
"""Delegate to Ethos-U: needs the extra ``[aot]``."""

from __future__ import annotations

from typing import ClassVar

import torch
from etx_exir import BackendDetails, CompileSpec, DelegationSpec, PreprocessResult
from etx_exir.ir.provenance import source_line
from etx_quant.rows import Compared, Row
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.blob import write_blob
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.ethos_u.limits import over_limit
from etx_backend_arm.ethos_u.report import Origin, encoded, report_key
from etx_backend_arm.ethos_u.slices import keep_slices_apart
from etx_backend_arm.ethos_u.vela import compile_and_report, vela_version
from etx_backend_arm.lowering import lower_node, lower_program
from etx_backend_arm.nodes.moves import MOVED
from etx_backend_arm.nodes.plain import PLAIN
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantized import Step, find_step, split_of
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_backend_arm.tosa import Graph, Op

__all__ = ["EthosUBackend", "EthosUPartitioner", "EthosUQuantizer"]

CONSTANTS = (Op.CONST, Op.CONST_SHAPE)
INTEGERS = TosaCompileSpec("TOSA-1.0+INT+int16")
aten = torch.ops.aten
CHOICES = (
    aten.masked_fill.Scalar,
    aten.masked_fill_.Scalar,
    aten.slice_scatter.default,
    aten.tril.default,
    aten.triu.default,
    aten.where.self,
)
"""Operators that are SELECT, which an Ethos-U55 has not."""
NOT_WIDE = (
    aten.bmm.default,
    aten.matmul.default,
    aten.mm.default,
)
"""Of int16 Vela 5.2.0 refuses products of matrices."""


class EthosUBackend(BackendDetails):
    """Lowers a partition to the register commands of an Ethos-U."""

    @staticmethod
    def preprocess(
        edge_program: ExportedProgram, compile_specs: list[CompileSpec]
    ) -> PreprocessResult:
        """Return the blob that Vela's output makes for ``edge_program``."""
        spec = EthosUCompileSpec.from_list(compile_specs)
        graph = lower_program(edge_program, spec.has_narrow_tables)
        keep_slices_apart(graph)
        origins = _origins(graph, edge_program)
        compiled, report = compile_and_report(graph.serialize(), spec, origins)
        blob = write_blob(compiled)
        return PreprocessResult(blob, data_store_output={report_key(blob): encoded(report)})


def _origins(graph: Graph, program: ExportedProgram) -> dict[str, Origin]:
    """Return of each value the operator that is behind it, and its source line."""
    nodes = {node.name: node for node in program.graph.nodes}
    found = {}
    for value, maker in graph.makers.items():
        node = nodes.get(maker)
        if node is not None:
            named = split_of(node) or node
            found[value] = (str(named.target), source_line(named) or source_line(node))
    return found


class EthosUPartitioner(TOSAPartitioner):
    """Delegates every connected run of int8 operators that the target can do.

    Vela has no fallback: what it cannot do has to stay out, by the limits of ``ethos_u.limits``.
    """

    def __init__(self, compile_spec: EthosUCompileSpec) -> None:
        super().__init__(INTEGERS)
        self.target = compile_spec
        self.idle: set[Node] = set()
        """Nodes of which no operator is left."""
        specs = [*compile_spec.to_list(), CompileSpec("vela", vela_version().encode())]
        self.delegation_spec = DelegationSpec(EthosUBackend.__name__, specs)
        self.name = compile_spec.target

    def groups(self, module: GraphModule) -> list[list[Node]]:
        """Return groups that compute something: Vela refuses others."""
        return [group for group in super().groups(module) if not self._is_idle(group)]

    def _is_idle(self, group: list[Node]) -> bool:
        own = [node for node in group if node in self.limits and self.limits[node] is None]
        return all(node in self.idle for node in own)

    def integer(self, node: Node) -> str | None:
        """Return why a node has no form in TOSA, or what of that form the target cannot do."""
        reason = super().integer(node)
        if reason is not None or self.program is None:
            return reason
        if node.target in NOT_WIDE and self.is_wide(node):
            return f"{node.name} is between int16, which {self.name} has not for {node.target}"
        if (node.target in PLAIN or node.target in MOVED) and not isinstance(
            find_step(node, self._look), Step
        ):
            return f"{node.name} is of numbers that are not quantized: they stay on the CPU"
        if node not in self.limits:
            graph = lower_node(self.program, node, self.target.has_narrow_tables)
            self.limits[node] = over_limit(graph, self.target.family)
            if all(each.op in CONSTANTS for each in graph.operators()):
                self.idle.add(node)
        return self.limits[node]


class EthosUQuantizer(TOSAQuantizer):
    """Annotates for int8 per channel unless ``set_global`` and its like say otherwise.

    Comparisons and choices stay on the CPU, and what they read as it is.
    """

    rows: ClassVar[dict[object, Row]] = {
        target: row
        for target, row in TOSAQuantizer.rows.items()
        if not isinstance(row, Compared) and target not in CHOICES
    }

    def __init__(self, compile_spec: EthosUCompileSpec) -> None:
        super().__init__(INTEGERS)
        self.target = compile_spec
