# SPDX-License-Identifier: BSD-3-Clause
"""The managers of programs: ETX's, with what ExecuTorch's have beside them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import etx_exir
from etx_exir.emit import emit_all
from etx_schema import (
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    Buffer,
    DataLocation,
    ExecutionPlan,
    Program,
    PteFile,
)

from etx_executorch.adapters.config import ExecutorchBackendConfig
from etx_executorch.words import Replaced

__all__ = [
    "EdgeProgramManager",
    "EmitterOutput",
    "ExecutorchProgramManager",
    "emit_program",
    "to_edge",
    "to_edge_transform_and_lower",
    "with_blobs",
]


@dataclass
class EmitterOutput:
    """A program with its blobs inside its tables, and what belongs to it."""

    program: Program
    debug_handle_map: Any = None
    method_to_delegate_debug_id_map: Any = None
    instruction_id_to_num_outs_map: Any = None
    mutable_data: list[Buffer] | None = None
    external_constant_buffer: list[bytes] = field(default_factory=list)
    external_constant_map: dict[str, dict[str, int]] = field(default_factory=dict)


class ExecutorchProgramManager(Replaced, etx_exir.ExecutorchProgramManager):
    """A finished file in memory; `executorch_program` holds the blobs, too."""

    @cached_property
    def executorch_program(self) -> Program:
        """The tables of the file with constants and delegates inside."""
        return with_blobs(self.pte_file)

    @cached_property
    def _emitter_output(self) -> EmitterOutput:
        external: list[bytes] = []
        places: dict[str, dict[str, int]] = {}
        for tag, ptd in self._emitted.external.items():
            for name, blob in ptd.named_data.items():
                data = bytes(blob.data)
                if data not in external:
                    external.append(data)
                places.setdefault(tag, {})[name] = external.index(data)
        return EmitterOutput(
            self.executorch_program,
            self.debug_handle_map,
            self.delegate_map,
            self.instruction_id_to_num_outs_map,
            [Buffer(b""), *(Buffer(bytes(blob)) for blob in self.pte_file.mutable_data)],
            external,
            places,
        )


class EdgeProgramManager(Replaced, etx_exir.EdgeProgramManager):
    """Programs in the Edge dialect, by method name; the steps return new managers."""

    @property
    def _edge_programs(self) -> Any:
        return self._programs

    def to_executorch(
        self, config: Any = None, *, progress: Any = None
    ) -> ExecutorchProgramManager:
        """Plan memory and emit."""
        done = super().to_executorch(config, progress=progress)
        return ExecutorchProgramManager(
            done._emitted, done._programs, done._config, done._constant_methods
        )

    def _derive(self, programs: Any) -> EdgeProgramManager:
        return _adapted(super()._derive(programs))


def _adapted(manager: etx_exir.EdgeProgramManager) -> EdgeProgramManager:
    return EdgeProgramManager(
        manager._programs, manager._constant_methods, manager._config, manager._observer
    )


def to_edge(*args: Any, **options: Any) -> EdgeProgramManager:
    """Lower exported programs, one or several by method name, to the Edge dialect."""
    return _adapted(etx_exir.to_edge(*args, **options))


def to_edge_transform_and_lower(*args: Any, **options: Any) -> EdgeProgramManager:
    """Lower to Edge with the operators kept whole that a partitioner asks for; then delegate."""
    return _adapted(etx_exir.to_edge_transform_and_lower(*args, **options))


def emit_program(
    methods: Any,
    emit_stacktrace: bool = False,
    prim_getters: dict[str, Any] | None = None,
    emit_mutable_buffer_names: bool = False,
) -> EmitterOutput:
    """Emit one Edge program, or several by method name."""
    programs = methods if isinstance(methods, dict) else {"forward": methods}
    config = ExecutorchBackendConfig(
        emit_stacktrace=emit_stacktrace, emit_mutable_buffer_names=emit_mutable_buffer_names
    )
    emitted = emit_all(programs, config, prim_getters or {})
    return ExecutorchProgramManager(
        emitted, dict(programs), config, prim_getters or {}
    )._emitter_output


def with_blobs(pte: PteFile) -> Program:
    """Return the tables with the blobs inside that ETX keeps beside them."""
    inline = list(pte.program.backend_delegate_data)
    first = len(inline)
    inline += [BackendDelegateInlineData(bytes(blob)) for blob in pte.delegates]
    return replace(
        pte.program,
        execution_plan=[_inlined(plan, first) for plan in pte.program.execution_plan],
        constant_buffer=[Buffer(b""), *(Buffer(bytes(blob)) for blob in pte.constants)],
        backend_delegate_data=inline,
    )


def _inlined(plan: ExecutionPlan, first: int) -> ExecutionPlan:
    chains: Any = [replace(chain, stacktrace=chain.stacktrace or None) for chain in plan.chains]  # type: ignore[arg-type]
    delegates = []
    for each in plan.delegates:
        place = each.processed
        if place is not None and place.location == DataLocation.SEGMENT:
            place = BackendDelegateDataReference(DataLocation.INLINE, first + place.index)
        delegates.append(replace(each, processed=place))
    return replace(plan, chains=chains, delegates=delegates)
