# SPDX-License-Identifier: BSD-3-Clause
"""Delegate to Ethos-U: needs the extra ``[aot]``."""

from __future__ import annotations

from etx_exir import BackendDetails, CompileSpec, DelegationSpec, PreprocessResult
from torch.export import ExportedProgram
from torch.fx import Node

from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.blob import write_blob
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.ethos_u.limits import over_limit
from etx_backend_arm.ethos_u.slices import keep_slices_apart
from etx_backend_arm.ethos_u.vela import compile_graph, vela_version
from etx_backend_arm.lowering import lower_node, lower_program
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer

__all__ = ["EthosUBackend", "EthosUPartitioner", "EthosUQuantizer"]

INTEGERS = TosaCompileSpec("TOSA-1.0+INT")


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
        return PreprocessResult(write_blob(compile_graph(graph.serialize(), spec)))


class EthosUPartitioner(TOSAPartitioner):
    """Delegates every connected run of int8 operators that the target can do.

    Vela has no fallback: what it cannot do has to stay out, by the limits of ``ethos_u.limits``.
    """

    def __init__(self, compile_spec: EthosUCompileSpec) -> None:
        super().__init__(INTEGERS)
        self.target = compile_spec
        specs = [*compile_spec.to_list(), CompileSpec("vela", vela_version().encode())]
        self.delegation_spec = DelegationSpec(EthosUBackend.__name__, specs)

    def integer(self, node: Node) -> str | None:
        """Return why a node has no form in TOSA, or what of that form the target cannot do."""
        reason = super().integer(node)
        if reason is not None or self.program is None:
            return reason
        if node not in self.limits:
            graph = lower_node(self.program, node, self.target.has_narrow_tables)
            self.limits[node] = over_limit(graph, self.target.family)
        return self.limits[node]


class EthosUQuantizer(TOSAQuantizer):
    """Annotates for int8 per channel unless ``set_global`` and its like say otherwise."""

    def __init__(self, compile_spec: EthosUCompileSpec) -> None:
        super().__init__(INTEGERS)
        self.target = compile_spec
