# SPDX-License-Identifier: BSD-3-Clause
"""Recorded values against those of the program that an ETRecord holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from etx_exir.etrecord import ETRecord, parse_etrecord
from etx_schema import Blob, EtxError
from torch import Tensor
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from etx_devtools.compare.metrics import distance as measure
from etx_devtools.compare.reference import Reference
from etx_devtools.etdump import Run, Seen, to_python
from etx_devtools.inspector.etrecord import Record

__all__ = ["gaps", "program_of"]

EXPORTED, EDGE = "exported_program", "edge_dialect_exported_program"
METRICS = {"MSE": "mse", "L1": "l1", "SNR": "snr_db"}
METRICS |= {"MAX_ABS": "max_abs", "MAX_REL": "max_rel", "COSINE": "cosine", "ULP": "ulp"}


def program_of(source: Any, graph: str | None, method: str | None = None) -> ExportedProgram:
    """Return a program of a record: the exported one, or by default the Edge program."""
    if source is None:
        raise EtxError("the programs are in an ETRecord: give etrecord=")
    record: ETRecord = source if isinstance(source, ETRecord) else parse_etrecord(source)
    if graph == EXPORTED:
        found = record.exported_program
    elif graph in (None, EDGE) or str(graph).startswith(f"{EDGE}/"):
        name = str(graph or "").partition("/")[2] or method or "forward"
        found = record.edge_programs().get(name)
    else:
        found = record.graph_map.get(str(graph))
    if found is None:
        known = [EXPORTED] if record.exported_program is not None else []
        known += [f"{EDGE}/{name}" for name in record.edge_programs()] + [*record.graph_map]
        raise EtxError(f"the ETRecord has no program {graph!r} (it has: {', '.join(known)})")
    return found


def gaps(
    source: Any,
    record: Record,
    runs: Sequence[Run],
    buffer: Blob,
    metric: Any,
    reference_graph: str | None,
    method: str | None,
) -> list[dict[str, Any]]:
    """Return a row for each value that both have, with ExecuTorch's columns."""
    whole = source if isinstance(source, ETRecord) else parse_etrecord(source)
    methods = [*record.handles]
    method = method or (methods[0] if len(methods) == 1 else "forward")
    use_exported = whole.exported_program is not None and method in ("forward", *methods[:1])
    graph = reference_graph or (EXPORTED if use_exported else EDGE)
    program = program_of(whole, graph, method)
    expected = _expected(program, whole, method)
    chosen = [run for run in runs if run.method in (None, method)]
    if not chosen:
        raise EtxError(f"the dump has no execution of {method!r}")
    compare = _metric(metric)
    rows = []
    for handles, (name, seen) in _recorded(record, chosen[0], method).items():
        found = _match(record, method, handles, expected, graph == EXPORTED)
        if found is None:
            continue
        names, values = found
        recorded = [_tensor(to_python(item.value, buffer)) for item in seen]
        alike = [x for x in recorded if x is not None and x.numel() == values.numel()]
        if alike:
            got = alike[0].reshape(values.shape)
            nodes = record.of(method, handles)
            rows.append(
                {
                    "aot_debug_handle": handles,
                    "aot_ops": names,
                    "aot_intermediate_output": values,
                    "runtime_ops": [name],
                    "runtime_debug_handle": handles,
                    "runtime_intermediate_output": got,
                    "gap": [compare(values, got)],
                    "stacktraces": {n.name: n.stack_trace for n in nodes if n.stack_trace},
                }
            )
    return sorted(rows, key=lambda row: row["aot_debug_handle"])


def _expected(program: ExportedProgram, record: ETRecord, method: str) -> dict[str, Any]:
    """Return the values of a program on the representative inputs, by node."""
    inputs = record._representative_inputs
    if isinstance(inputs, Mapping):
        inputs = inputs.get(method)
    if inputs is None:
        raise EtxError(
            "the ETRecord has no representative inputs: call update_representative_inputs with "
            "those that the dump was recorded with"
        )
    reference = Reference(program)
    flat = pytree.tree_leaves(inputs)
    values, _ = reference.run(reference.bind(flat[: len(reference.inputs())]))
    return {name: items[-1] for name, items in values.items()}


def _recorded(
    record: Record, run: Run, method: str
) -> dict[tuple[int, ...], tuple[str, list[Seen]]]:
    """Return what ran last for each set of handles, and its values."""
    names = {
        (span.chain, span.instruction, span.delegate_id): span.name
        for span in run.spans
        if span.name.startswith("native_call_") or span.delegate_id is not None
    }
    found: dict[tuple[int, ...], tuple[str, list[Seen]]] = {}
    values: dict[tuple[Any, ...], list[Seen]] = {}
    for seen in run.seen:
        if seen.chain != 0:
            continue
        handles = (
            record.handles_of(method, seen.instruction)
            if seen.delegate_id is None
            else record.handles_within(method, seen.instruction, seen.delegate_id)
        )
        key = (seen.chain, seen.instruction, seen.delegate_id)
        values.setdefault(key, []).append(seen)
        if handles:
            found[tuple(handles)] = (names.get(key, "DELEGATE_CALL"), values[key])
    return found


def _match(
    record: Record,
    method: str,
    handles: Sequence[int],
    expected: Mapping[str, Any],
    is_exported: bool,
) -> tuple[list[str], Tensor] | None:
    """Return the nodes of the program with these handles, and the value of the last of them."""
    nodes = record.of(method, handles)
    if not is_exported:
        names = [node.name for node in nodes if isinstance(expected.get(node.name), Tensor)]
        return (names, expected[names[-1]]) if names else None
    noted = [node.equals for node in nodes if node.equals is not None]
    whole = [note for note in noted if isinstance(note, str) and note in expected]
    if noted and not whole:
        return None
    older = itertools.chain.from_iterable(node.sources[::-1] for node in nodes)
    names = list(dict.fromkeys(name for name in older if isinstance(expected.get(name), Tensor)))
    if whole and isinstance(expected[whole[-1]], Tensor):
        return list(dict.fromkeys([*names, whole[-1]])), expected[whole[-1]]
    return (names, expected[names[-1]]) if names else None


def _metric(metric: Any) -> Callable[[Tensor, Tensor], float]:
    if hasattr(metric, "element_compare"):
        return lambda a, b: float(metric.element_compare(a, b))
    if callable(metric):
        return lambda a, b: float(metric(a, b))
    name = METRICS.get(str(metric).upper())
    if name is None:
        raise EtxError(f"no metric {metric!r} (there are: {', '.join(METRICS)})")
    return lambda a, b: float(getattr(measure(_array(b), _array(a)), name))


def _array(tensor: Tensor) -> Any:
    return tensor.detach().to(torch.float64).numpy()


def _tensor(value: Any) -> Any:
    if isinstance(value, list):
        value = value[-1] if value else None
    if isinstance(value, np.ndarray):
        value = value.copy()
    return None if value is None else torch.as_tensor(value)
