# SPDX-License-Identifier: BSD-3-Clause
"""Delegation: tagged nodes move into programs of their own, which a backend lowers to blobs."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from etx_schema import CompileSpec, EtxError
from torch.export import ExportedProgram
from torch.fx import Graph, Node

from etx_exir.delegation.backend import (
    DELEGATION_TAG,
    BackendDetails,
    DelegationSpec,
    Partitioner,
    PartitionResult,
    PreprocessResult,
    backend_of,
)
from etx_exir.delegation.explain import note_reasons
from etx_exir.delegation.outline import Part, flat_copy, outline
from etx_exir.errors import BackendError, where
from etx_exir.ir.control_flow_graphs import graph_modules
from etx_exir.ir.debug_handles import number_nodes
from etx_exir.ir.delegate_call import LoweredBackendModule
from etx_exir.lower.copy_program import copy_program
from etx_exir.passes.base import name_outputs
from etx_exir.passes.simplify.remove_dead_code import RemoveDeadCode

__all__ = ["delegate", "to_backend"]


@overload
def to_backend(
    first: str, second: ExportedProgram, compile_specs: Sequence[CompileSpec] = ()
) -> LoweredBackendModule: ...
@overload
def to_backend(first: ExportedProgram, second: Partitioner) -> ExportedProgram: ...
@overload
def to_backend(
    first: Mapping[str, ExportedProgram], second: Mapping[str, Partitioner] | Partitioner
) -> dict[str, ExportedProgram]: ...
def to_backend(first: Any, second: Any, compile_specs: Sequence[CompileSpec] = ()) -> Any:
    """Delegate a whole program by backend id, or what a partitioner picks.

    `to_backend(id, program, specs)` returns a module that may be used inside another one;
    `to_backend(program, partitioner)` a program; `to_backend(programs, partitioners)`, both by
    method name, programs, whose partitions a backend may lower together.
    """
    if isinstance(first, str):
        if not isinstance(second, ExportedProgram):
            raise BackendError(
                f"to_backend({first!r}, ...): expected an ExportedProgram, got "
                f"{type(second).__name__}"
            )
        program = flat_copy(second)
        number_nodes(program)
        spec = DelegationSpec(first, list(compile_specs))
        lowered = LoweredBackendModule(
            program, first, b"", spec.compile_specs, out_spec=second.call_spec.out_spec
        )
        _lower({"forward": [Part(program, spec, "all", "the whole program", lowered)]})
        return lowered
    if isinstance(first, Mapping):
        chosen = second if isinstance(second, Mapping) else dict.fromkeys(first, second)
        return delegate(first, chosen)
    return delegate({"forward": first}, {"forward": second})["forward"]


def delegate(
    programs: Mapping[str, ExportedProgram], partitioners: Mapping[str, Partitioner | None]
) -> dict[str, ExportedProgram]:
    """Return copies of `programs` in which delegates stand for the nodes that were tagged."""
    result = dict(programs)
    parts: dict[str, list[Part]] = {}
    for name in sorted(programs):
        partitioner = partitioners.get(name)
        if partitioner is not None:
            result[name], parts[name] = _partitioned(programs[name], partitioner)
    _lower(parts)
    return result


def _partitioned(
    program: ExportedProgram, partitioner: Partitioner
) -> tuple[ExportedProgram, list[Part]]:
    if not isinstance(partitioner, Partitioner):
        raise BackendError(
            f"{partitioner!r} is not a partitioner: expected an etx_exir.Partitioner"
            + (" instance; call the class" if isinstance(partitioner, type) else "")
        )
    copied = copy_program(program)
    number_nodes(copied)
    result = partitioner.partition(copied)
    if not isinstance(result, PartitionResult):
        raise BackendError(
            f"{type(partitioner).__name__}.partition returned {type(result).__name__}; "
            "expected a PartitionResult"
        )
    if not isinstance(result.partition_tags, Mapping):
        raise BackendError(
            f"{type(partitioner).__name__}.partition: partition_tags is "
            f"{result.partition_tags!r}; expected a dict from tag to DelegationSpec"
        )
    tagged = result.tagged_exported_program
    note_reasons(tagged, partitioner)
    parts = []
    for module in graph_modules(tagged.graph_module):
        groups = _by_tag(module.graph, result.partition_tags)
        for tag, nodes in groups.items():
            parts.append(outline(tagged, module, nodes, result.partition_tags[tag], tag))
        for node in module.graph.nodes:
            node.meta.pop(DELEGATION_TAG, None)
        if groups:
            _sort(module.graph)
            module.graph.lint()
            module.recompile()
    name_outputs(tagged)
    RemoveDeadCode().run(tagged)
    number_nodes(tagged)
    return tagged, parts


def _by_tag(graph: Graph, tags: Mapping[str, DelegationSpec]) -> dict[str, list[Node]]:
    """Return the nodes of each tag; what reads one result of several goes where they are."""
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            tag = node.meta[DELEGATION_TAG] = node.args[0].meta.get(DELEGATION_TAG)
        else:
            tag = node.meta.get(DELEGATION_TAG)
        if tag is None:
            continue
        if tag not in tags:
            raise BackendError(f"{where(node)}: tag {tag!r} is not in partition_tags")
        found.setdefault(tag, []).append(node)
    return found


def _lower(parts: Mapping[str, list[Part]]) -> None:
    """Let each backend lower its partitions of all methods."""
    grouped: dict[str, dict[str, list[Part]]] = {}
    for method, items in parts.items():
        for part in items:
            grouped.setdefault(part.spec.backend_id, {}).setdefault(method, []).append(part)
    for backend_id, methods in grouped.items():
        backend = backend_of(backend_id)
        for part, result in _preprocess(backend_id, backend, methods):
            _store(part, result)


def _preprocess(
    backend_id: str, backend: type[BackendDetails], methods: Mapping[str, list[Part]]
) -> Iterator[tuple[Part, PreprocessResult]]:
    own: Any = backend.preprocess_multimethod
    inherited: Any = BackendDetails.preprocess_multimethod
    if getattr(own, "__func__", own) is inherited.__func__:
        for method, parts in methods.items():
            for part in parts:
                place = f"method {method!r}, {part.where}"
                specs = list(part.spec.compile_specs)
                yield part, _call(backend_id, place, backend.preprocess, part.program, specs)
        return
    programs = {method: [part.program for part in parts] for method, parts in methods.items()}
    specs_of = {m: [list(p.spec.compile_specs) for p in parts] for m, parts in methods.items()}
    results = _call(backend_id, f"methods {', '.join(methods)}", own, programs, specs_of)
    for method, parts in methods.items():
        got = results.get(method) if isinstance(results, Mapping) else None
        if not isinstance(got, list) or len(got) != len(parts):
            raise BackendError(
                f"{backend_id}.preprocess_multimethod: expected a list of {len(parts)} results "
                f"for method {method!r}, got {got!r}"
            )
        yield from zip(parts, got, strict=True)


def _call(backend_id: str, place: str, function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except EtxError:
        raise
    except Exception as error:
        raise BackendError(
            f"backend {backend_id!r} failed to lower {place}: {type(error).__name__}: {error}"
        ) from error


def _store(part: Part, result: Any) -> None:
    blob = getattr(result, "processed_bytes", None)
    if not isinstance(blob, bytes):
        raise BackendError(
            f"{part.spec.backend_id}.preprocess returned {type(result).__name__}; expected a "
            "PreprocessResult with processed_bytes of type bytes"
        )
    lowered = part.lowered
    lowered._processed_bytes = blob
    lowered._named_data = result.data_store_output
    lowered.meta["debug_handle_map"] = dict(result.debug_handle_map or {})
    lowered.meta["_delegate_info_meta"] = result._delegate_info_meta


def _sort(graph: Graph) -> None:
    """Put every node behind its arguments; the order stays as it was where it can."""
    position = {node: index for index, node in enumerate(graph.nodes)}
    needs = {node: len(node.all_input_nodes) for node in position}
    ready = [(position[node], node) for node, count in needs.items() if not count]
    order: list[Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for user in node.users:
            needs[user] -= 1
            if not needs[user]:
                heapq.heappush(ready, (position[user], user))
    anchor = graph._root
    for node in order:
        anchor.append(node)
        anchor = node
