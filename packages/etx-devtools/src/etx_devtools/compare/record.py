# SPDX-License-Identifier: BSD-3-Clause
"""Every value of one execution, in the order in which it was computed.

What ran is told by an ETDump with its debug buffer: of this machine, of ExecuTorch, or of a device.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from etx_schema import Blob, DelegateCall, EtxError, ExecutionPlan, KernelCall, PteFile, TensorList
from etx_schema import Tensor as WireTensor
from etx_schema.inspect.reads_writes import ROW, Effect, effects, split_results
from torch import Tensor

from etx_devtools.compare.memory import UnknownValueError, dtype_of
from etx_devtools.etdump import Run, Seen, to_python

__all__ = ["Recording", "Step", "find_method", "recording_of", "recordings_of", "shapes_of"]

CALLS = ("OPERATOR_CALL", "DELEGATE_CALL", "MOVE_CALL", "JF_CALL", "FREE_CALL")
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
NO_TENSORS = (
    "the dump holds statistics in place of values, which only say that something is wrong: record "
    "with `--values all`, or a part with `--values FIRST:LAST`"
)
NO_VALUES = (
    "the dump holds no values of instructions: record with `etx run --etdump FILE --values all`"
)


@dataclass(frozen=True)
class Step:
    """An instruction that ran, and the values that it left, by slot."""

    instruction: int
    values: tuple[tuple[int, Any], ...] = ()


@dataclass
class Recording:
    """One execution: its instructions in the order of time, and what the method returned."""

    steps: list[Step]
    outputs: list[Any] = field(default_factory=list)


def find_method(pte: PteFile, name: str) -> int:
    """Return the index of method `name`; EtxError where there is none."""
    names = [plan.name or "" for plan in pte.program.execution_plan]
    if name not in names:
        raise EtxError(f"the program has no method {name!r} (it has: {', '.join(sorted(names))})")
    return names.index(name)


def recordings_of(plan: ExecutionPlan, runs: Sequence[Run], buffer: Blob) -> list[Recording]:
    """Return the executions among `runs`, without those of other methods."""
    chosen = [run for run in runs if run.is_execution and run.method in (None, plan.name)]
    return [recording_of(plan, run, buffer) for run in chosen]


def recording_of(plan: ExecutionPlan, run: Run, buffer: Blob) -> Recording:
    """Return one execution; EtxError where the dump has no values, or is of another program."""
    seen: dict[int, deque[Seen]] = {}
    for item in run.seen:
        if item.chain == 0 and item.delegate_id is None:
            seen.setdefault(item.instruction, deque()).append(item)
    if any(item.statistics is not None for items in seen.values() for item in items):
        raise EtxError(NO_TENSORS)
    found = effects(plan)
    order = [s.instruction for s in run.spans if s.chain == 0 and s.name in CALLS]
    calls = plan.chains[0].instructions
    if order and max(order) >= len(calls):
        raise EtxError(
            f"the dump is not of this program: it has instruction {max(order)}, and "
            f"{plan.name} has {len(calls)}"
        )
    times = Counter(order)
    each = {number: len(items) // max(1, times[number]) for number, items in seen.items()}
    outputs = [_value(item, buffer) for item in run.seen if item.is_output]
    steps = []
    for number in order:
        items = seen.get(number, deque())
        count = min(each.get(number, 0), len(items))
        values = [_value(items.popleft(), buffer) for _ in range(count)]
        pairs = _slots(plan, calls[number].instr_args, found[number], values)
        steps.append(Step(number, tuple((s, _typed(plan, s, value)) for s, value in pairs)))
    if not seen and any(isinstance(step.instr_args, KernelCall) for step in calls):
        raise EtxError(NO_VALUES)
    pairs = zip(plan.outputs, outputs, strict=False)
    return Recording(steps, [_typed(plan, slot, value) for slot, value in pairs])


def _value(seen: Seen, buffer: Blob) -> Any:
    return to_python(seen.value, buffer)


def _slots(
    plan: ExecutionPlan, call: Any, effect: Effect, values: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield what an instruction left by slot: kernels tell results, delegates all arguments."""
    if isinstance(call, DelegateCall):
        yield from (
            (slot, value)
            for slot, value in zip(call.args, values, strict=False)
            if slot in effect.writes
        )
        return
    if not isinstance(call, KernelCall) or not values:
        return
    results, _ = split_results(plan, call.args)
    is_in_place = effect.op.partition(".")[0].endswith("_") or effect.op == ROW
    slots = call.args[:1] if is_in_place else results
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    lists = [s for slot in slots for s in _items(plan, slot)]
    yield from zip(lists, flat, strict=False)


def _items(plan: ExecutionPlan, slot: int) -> Sequence[int]:
    value = plan.values[slot].val
    return value.items if isinstance(value, TensorList) else [slot]


def _typed(plan: ExecutionPlan, slot: int, value: Any) -> Any:
    """Return an array as a tensor of the slot's type, and anything else as it is."""
    wire = plan.values[slot].val
    if not isinstance(value, np.ndarray) or not isinstance(wire, WireTensor):
        return value
    try:
        dtype = dtype_of(wire)
    except UnknownValueError:
        return None
    if value.dtype.kind in "uV" and dtype != torch.uint8:
        value = value.view(SIGNED[value.dtype.itemsize])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not writable")
        tensor = torch.from_numpy(value)
    return tensor if tensor.dtype == dtype else tensor.view(dtype)


def shapes_of(recording: Recording) -> Mapping[int, Sequence[int]]:
    """Return the sizes of every tensor that was recorded, by slot."""
    return {
        slot: tuple(value.shape)
        for step in recording.steps
        for slot, value in step.values
        if isinstance(value, Tensor)
    }
