# SPDX-License-Identifier: BSD-3-Clause
"""The managers of programs: ETX's, with what ExecuTorch's have beside them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import etx_exir
from etx_exir.delegation.partition import delegate
from etx_exir.emit import emit_all
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.lower.copy_program import apply_passes, copy_program
from etx_exir.partitioners import GroupPartitioner
from etx_schema import (
    BackendDelegateDataReference,
    BackendDelegateInlineData,
    Buffer,
    DataLocation,
    ExecutionPlan,
    Program,
    PteFile,
)
from etx_schema.ptd import serialize_ptd
from torch.export import ExportedProgram

from etx_executorch.adapters.config import ExecutorchBackendConfig
from etx_executorch.adapters.dialect import in_edge, name_calls, plain, to_edge_ops, to_torch_ops
from etx_executorch.adapters.memory_planning import (
    MemoryPlanningPass,
    keep_memories,
    update_all_tensors_lifetime,
)
from etx_executorch.adapters.out_variants import ToOutVarPass
from etx_executorch.adapters.specs import SpecPropPass, specs_of
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

    def exported_program(self, method_name: str = "forward") -> ExportedProgram:
        """Return the program that was emitted; specs of its nodes say where these lie."""
        program = super().exported_program(method_name)
        if not any("spec" in node.meta for node in program.graph.nodes):
            _place(program, self._emitted.places[method_name])
        return program

    @property
    def _tensor_data(self) -> dict[str, bytes]:
        """The files of tensors outside, by their names without `.ptd`."""
        return {tag: serialize_ptd(ptd) for tag, ptd in self._emitted.external.items()}

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
    """Programs in the Edge dialect, by method name; the steps return new managers.

    Their graphs call operators of the Edge dialect, of which `_op` is torch's.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for program in self._programs.values():
            to_edge_ops(program.graph_module)

    @property
    def _edge_programs(self) -> Any:
        return self._programs

    def transform(self, passes: Any) -> EdgeProgramManager:
        """Apply user passes, the same to all methods or a list a method."""
        return _adapted(super().transform(_in_edge(passes)))

    def to_executorch(
        self, config: Any = None, *, progress: Any = None
    ) -> ExecutorchProgramManager:
        """Plan memory and emit."""
        config = config or ExecutorchBackendConfig()
        if config.passes:
            config = copy.copy(config)
            config.passes = [*in_edge(config.passes), to_torch_ops]
        plain_programs = {name: plain(program) for name, program in self._programs.items()}
        config = _planned(config, plain_programs)
        manager = etx_exir.EdgeProgramManager(
            plain_programs, self._constant_methods, self._config, self._observer
        )
        done = manager.to_executorch(config, progress=progress)
        result = ExecutorchProgramManager(
            done._emitted, done._programs, done._config, done._constant_methods
        )
        result._record = self._record
        return result

    def _derive(self, programs: Any) -> EdgeProgramManager:
        return _adapted(super()._derive(programs))


def _planned(config: Any, programs: dict[str, Any]) -> Any:
    """Return options with ETX's planners in place of this package's, which know the graphs.

    Where a planner has a say in the graph, passes are applied to `programs` before.
    """
    chosen = config.memory_planning_pass
    planners = dict(chosen) if isinstance(chosen, Mapping) else dict.fromkeys(programs, chosen)
    ours = {n: p for n, p in planners.items() if isinstance(p, MemoryPlanningPass)}
    if not ours:
        return config
    config = copy.copy(config)
    if config.passes and any(planner.is_custom() for planner in ours.values()):
        programs |= {name: apply_passes(p, config.passes) for name, p in programs.items()}
        config.passes = []
    found = {n: _options(p, programs[n]) for n, p in ours.items() if n in programs}
    config.memory_planning_pass = planners | found
    return config


def _options(planner: MemoryPlanningPass, program: ExportedProgram) -> Any:
    """Return ETX's options of a planner; what chooses memories is run on a copy of the graph."""
    module, signature = program.graph_module, program.graph_signature
    if not planner.is_custom():
        return planner.options(module, signature)
    drawn = copy_program(program)
    twins = _nodes(drawn.graph_module)
    specs = SpecPropPass()
    specs(drawn.graph_module)
    specs.update_placeholder_tensor_specs(drawn, drawn.graph_module)
    ToOutVarPass()(drawn.graph_module)
    planner.run(drawn.graph_module, drawn.graph_signature)
    memory_map = keep_memories(twins, _nodes(module))
    return planner.options(module, signature, memory_map=memory_map)


def _nodes(root: Any) -> list[Any]:
    return [node for module in graph_modules(root) for node in module.graph.nodes]


def _place(program: ExportedProgram, places: Mapping[str, Any]) -> None:
    module = program.graph_module
    specs = SpecPropPass()
    specs(module)
    specs.update_placeholder_tensor_specs(program, module)
    update_all_tensors_lifetime(module, program.graph_signature)
    for node in module.graph.nodes:
        for spec, place in zip(specs_of(node), places.get(node.name, ()), strict=False):
            spec.mem_id = place.memory_id
            spec.mem_offset = place.memory_offset_low | place.memory_offset_high << 32


def _in_edge(passes: Any) -> Any:
    if isinstance(passes, Mapping):
        return {name: in_edge(listed) for name, listed in passes.items()}
    return in_edge(passes)


def _adapted(manager: etx_exir.EdgeProgramManager) -> EdgeProgramManager:
    result = EdgeProgramManager(
        manager._programs, manager._constant_methods, manager._config, manager._observer
    )
    if manager._record is not None:
        result._record = record = manager._record.copy()
        record.keep_edge({name: plain(each) for name, each in record.edge_programs().items()})
    return result


def to_edge(*args: Any, **options: Any) -> EdgeProgramManager:
    """Lower exported programs, one or several by method name, to the Edge dialect."""
    return _named(_adapted(etx_exir.to_edge(*args, **options)))


def to_edge_transform_and_lower(
    programs: Any, transform_passes: Any = None, *args: Any, **options: Any
) -> EdgeProgramManager:
    """Lower to Edge with the operators kept whole that a partitioner asks for; then delegate."""
    lowered = etx_exir.to_edge_transform_and_lower(
        programs, _in_edge(transform_passes), *args, delegator=_delegate, **options
    )
    return _named(_adapted(lowered))


def _named(manager: EdgeProgramManager) -> EdgeProgramManager:
    for program in manager._programs.values():
        name_calls(program)
    return manager


def _delegate(programs: Any, partitioners: Any) -> Any:
    for name, program in programs.items():
        is_ours = isinstance(partitioners.get(name), GroupPartitioner)
        (to_torch_ops if is_ours else to_edge_ops)(program.graph_module)
        name_calls(program)
    done = delegate(programs, partitioners)
    for program in done.values():
        to_torch_ops(program.graph_module)
    return done


def emit_program(
    methods: Any,
    emit_stacktrace: bool = False,
    prim_getters: dict[str, Any] | None = None,
    emit_mutable_buffer_names: bool = False,
) -> EmitterOutput:
    """Emit one Edge program, or several by method name."""
    named = methods if isinstance(methods, dict) else {"forward": methods}
    programs = {name: plain(program) for name, program in named.items()}
    config = ExecutorchBackendConfig(
        emit_stacktrace=emit_stacktrace, emit_mutable_buffer_names=emit_mutable_buffer_names
    )
    emitted = emit_all(programs, config, prim_getters or {})
    return ExecutorchProgramManager(emitted, programs, config, prim_getters or {})._emitter_output


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
