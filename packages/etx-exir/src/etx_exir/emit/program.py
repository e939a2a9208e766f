# SPDX-License-Identifier: BSD-3-Clause
"""A set of exported programs as one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etx_schema import (
    AllocationDetails,
    BackendDelegateInlineData,
    Chain,
    ContainerMetadata,
    DataLocation,
    ExecutionPlan,
    NamedBlob,
    Operator,
    Program,
    PtdFile,
    PteFile,
    Target,
)
from etx_schema.problem import is_for_people
from etx_schema.targets.rows import Row
from torch.export import ExportedProgram

from etx_exir.config import ExecutorchBackendConfig
from etx_exir.emit.constant_method import constant_method
from etx_exir.emit.debug_table import DEBUG_KEY, Origins, stack_frames
from etx_exir.emit.gaps import Gaps
from etx_exir.emit.graph import emit_nodes
from etx_exir.emit.method import MethodEmitter
from etx_exir.emit.planning import check_pins, check_planning, planning_of
from etx_exir.emit.signature import bind_inputs, bind_outputs
from etx_exir.emit.treespec import dump_treespec
from etx_exir.errors import EmitError
from etx_exir.ir.constraints import CONSTRAINTS_KEY, constraints_of
from etx_exir.ir.data_store import NamedDataStore
from etx_exir.ir.pools import Pools
from etx_exir.plan import Plan, PlanReport, plan
from etx_exir.plan.shared_state import place_shared_state
from etx_exir.plan.tensors import placed
from etx_exir.target.check import check_target, load_target


@dataclass
class Emitted:
    """A file in memory, the reports of its memory plans, and the files that go beside it.

    `places` tells, by method and node, where tensors lie.
    """

    pte: PteFile
    reports: dict[str, PlanReport]
    external: dict[str, PtdFile]
    origins: dict[str, Origins]
    places: dict[str, dict[str, list[AllocationDetails]]]


def emit(
    programs: Mapping[str, ExportedProgram],
    config: ExecutorchBackendConfig | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    target: str | Target | None = None,
) -> PteFile:
    """Return `programs` as a file in memory, checked against `target`; nothing is written."""
    return emit_all(programs, config, constant_methods, target).pte


def emit_all(
    programs: Mapping[str, ExportedProgram],
    config: ExecutorchBackendConfig | None = None,
    constant_methods: Mapping[str, Any] | None = None,
    target: str | Target | None = None,
) -> Emitted:
    """Return `programs` as a file, with memory reports, and `.ptd` files by tag.

    Without a target, results share memory where both runtimes' kernels allow it.
    """
    config = config or ExecutorchBackendConfig()
    constant_methods = constant_methods or {}
    _check_names(programs, constant_methods)
    check_planning(config, programs)
    pools, gaps = Pools(), Gaps()
    kernels = load_target(target or "executorch").operators
    emitters = [
        _emit_method(n, programs[n], pools, config, gaps, kernels) for n in sorted(programs)
    ]
    constants = []
    for name, value in sorted(constant_methods.items()):
        with gaps.noting(name):
            constants.append(constant_method(name, value, pools))
    if gaps:
        gaps.refuse(_unplanned(emitters), target)
    place_shared_state(e.listing for e in emitters if e.options.share_mutable_buffers)
    planned: dict[str, Plan] = {}
    for emitter in emitters:
        with gaps.noting(emitter.name):
            planned[emitter.name] = plan(emitter.listing, emitter.options)
    if gaps:
        gaps.refuse(_unplanned(emitters), target)
    matched = {pin for result in planned.values() for pin in result.pins}
    check_pins([emitter.options for emitter in emitters], matched)
    plans, store = [], NamedDataStore()
    for emitter in emitters:
        sizes = planned[emitter.name].arena_sizes
        plans.append(_execution_plan(emitter, sizes, config.emit_stacktrace))
        for lowered in emitter.lowered:
            store.merge_named_data_store(lowered.named_data_store_output)
    plans += constants
    named = dict(store.get_named_data_store_output().pte_data)
    for tag, blobs in store.get_named_data_store_output().external_data.items():
        pools.put_named(tag, blobs)
    constraints = {name: constraints_of(programs[name]) for name in sorted(programs)}
    named[CONSTRAINTS_KEY] = NamedBlob(_as_json(constraints))
    origins = {e.name: Origins.of(e.program, e.listing, e.environment) for e in emitters}
    debug = {e.name: origins[e.name].document(e.constant_names) for e in emitters}
    named[DEBUG_KEY] = NamedBlob(_as_json(debug))
    pte = PteFile(
        program=Program(version=0, execution_plan=plans),
        constants=list(pools.constants.blobs),
        mutable_data=list(pools.initial.blobs),
        delegates=list(pools.delegates.blobs),
        named_data=named,
    )
    if not config.extract_delegate_segments:
        _store_inline(pte)
    if target is not None:
        check_target(pte, target)
    if not config.emit_debug:
        pte.named_data = {key: blob for key, blob in named.items() if not is_for_people(key)}
    reports = {name: result.report for name, result in planned.items()}
    places = {e.name: placed(e.listing) for e in emitters}
    return Emitted(pte, reports, dict(sorted(pools.external.items())), origins, places)


def _as_json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _unplanned(emitters: list[MethodEmitter]) -> PteFile:
    """Return what could be emitted, for a target to be compared with."""
    plans = [_execution_plan(emitter, [0], stacks=False) for emitter in emitters]
    debug = {e.name: Origins.of(e.program, e.listing, e.environment).document({}) for e in emitters}
    return PteFile(
        program=Program(version=0, execution_plan=plans),
        named_data={DEBUG_KEY: NamedBlob(_as_json(debug))},
    )


def _store_inline(pte: PteFile) -> None:
    """Move the blobs of delegates from segments into the program's tables."""
    blobs = [BackendDelegateInlineData(data=bytes(blob)) for blob in pte.delegates]
    pte.program.backend_delegate_data, pte.delegates = blobs, []
    for method in pte.program.execution_plan:
        for delegate in method.delegates:
            if delegate.processed is not None:
                delegate.processed.location = DataLocation.INLINE


def _check_names(programs: Mapping[str, Any], constant_methods: Mapping[str, Any]) -> None:
    if twice := sorted(set(programs) & set(constant_methods)):
        raise EmitError(f"methods that are both computed and constant: {', '.join(twice)}")


def _emit_method(
    name: str,
    program: ExportedProgram,
    pools: Pools,
    config: ExecutorchBackendConfig,
    gaps: Gaps,
    kernels: Mapping[str, Row],
) -> MethodEmitter:
    emitter = MethodEmitter(name, program, pools, planning_of(config, name), gaps, kernels)
    emitter.copies_views = not config.remove_view_copy
    bind_inputs(emitter, config)
    results = emit_nodes(emitter, program.graph_module)
    with gaps.noting(name):
        bind_outputs(emitter, results)
    with gaps.noting(name):
        emitter.container = ContainerMetadata(
            encoded_inp_str=dump_treespec(program.call_spec.in_spec),
            encoded_out_str=dump_treespec(program.call_spec.out_spec),
        )
    return emitter


def _execution_plan(emitter: MethodEmitter, arena_sizes: list[int], stacks: bool) -> ExecutionPlan:
    emitter.listing.finish()
    return ExecutionPlan(
        name=emitter.name,
        container_meta_type=emitter.container,
        values=emitter.values.items,
        inputs=emitter.listing.inputs,
        outputs=emitter.listing.outputs,
        chains=[
            Chain(
                inputs=[],
                outputs=[],
                instructions=[step.instruction for step in emitter.listing.steps],
                stacktrace=stack_frames(emitter.listing) if stacks else [],
            )
        ],
        operators=[Operator(name=n, overload=o) for n, o in emitter.listing.operators],
        delegates=emitter.delegates,
        non_const_buffer_sizes=arena_sizes,
    )
