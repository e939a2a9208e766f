# SPDX-License-Identifier: BSD-3-Clause
"""One instruction as a program of its own, with what it got and what it should have returned.

What is wrong because another instruction has overwritten what it reads stands behind that one.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema import (
    AllocationDetails,
    BackendDelegate,
    BackendDelegateDataReference,
    Bool,
    Chain,
    DataLocation,
    DelegateCall,
    Double,
    EValue,
    ExecutionPlan,
    Instruction,
    Int,
    IntList,
    KernelCall,
    OptionalTensorList,
    Program,
    PteFile,
    Tensor,
    TensorList,
    write_pte,
)
from etx_schema.files import write_atomically
from etx_schema.inspect.reads_writes import effects
from etx_schema.problem import DEBUG_KEY

__all__ = ["Found", "Overwriting", "names_beside", "write_reduced"]

NUMBERS = {Int: "int_val", Double: "double_val", Bool: "bool_val"}
ALIGNMENT = 16


@dataclass(frozen=True)
class Overwriting:
    """An instruction whose result `slot` has overwritten `victim`; what slots held before it."""

    instruction: int
    before: dict[int, Any]
    slot: int
    victim: int


@dataclass(frozen=True)
class Found:
    """An instruction that is wrong: what slots held before it, and its right result by slot.

    `earlier` is what has overwritten one of these slots, `before` holds what it should have left.
    """

    instruction: int
    before: dict[int, Any]
    expected: dict[int, Any]
    earlier: Overwriting | None = None


def names_beside(path: str | Path) -> list[Path]:
    """Return the files of a reduced program: itself, its inputs, the right result."""
    target = Path(path)
    return [target, target.with_suffix(".npz"), target.with_suffix(".expected.npz")]


def write_reduced(pte: PteFile, plan: ExecutionPlan, found: Found, path: str | Path) -> list[Path]:
    """Write the program to `path`, its inputs and the right result to `.npz` files beside it.

    Return the three paths.
    """
    writer = _Writer(pte, plan, found)
    names = names_beside(path)
    write_pte(writer.program(), names[0])
    _write_arrays(names[1], [writer.before[slot] for slot in writer.inputs])
    _write_arrays(names[2], [found.expected[slot] for slot in writer.outputs])
    return names


def _write_arrays(path: Path, tensors: list[Any]) -> None:
    buffer = BytesIO()
    np.savez(buffer, **{str(index): tensor.numpy() for index, tensor in enumerate(tensors)})
    write_atomically(path, [buffer.getbuffer()])


class _Writer:
    def __init__(self, pte: PteFile, plan: ExecutionPlan, found: Found) -> None:
        self.pte, self.plan, self.found = pte, plan, found
        self.values: list[EValue] = []
        self.slots: dict[int, int] = {}
        self.constants: list[Any] = []
        self.inputs: list[int] = []
        self.outputs = sorted(found.expected)
        self.size = 0
        self.effects = effects(plan)
        self.written: set[int] = set()
        self.places: dict[int, int] = {}
        self.operators: list[Any] = []
        self.delegates: list[BackendDelegate] = []
        self.blobs: list[Any] = []
        earlier = {} if found.earlier is None else found.earlier.before
        self.before = {**earlier, **found.before}

    def program(self) -> PteFile:
        """Return the program of the instruction, and of what has overwritten what it reads."""
        earlier = self.found.earlier
        if earlier is not None:
            self._share(earlier.slot, earlier.victim)
        numbers = [] if earlier is None else [earlier.instruction]
        steps = [self._step(number) for number in (*numbers, self.found.instruction)]
        plan = ExecutionPlan(
            name=self.plan.name,
            values=self.values,
            inputs=[self.slots[slot] for slot in self.inputs],
            outputs=[self.slots[slot] for slot in self.outputs],
            chains=[Chain(instructions=steps)],
            operators=self.operators,
            delegates=self.delegates,
            non_const_buffer_sizes=[0, max(self.size, ALIGNMENT)],
        )
        program = Program(
            version=self.pte.program.version,
            execution_plan=[plan],
            backend_delegate_data=self.pte.program.backend_delegate_data if self.delegates else [],
        )
        named = {k: blob for k, blob in self.pte.named_data.items() if k != DEBUG_KEY}
        return PteFile(
            program=program,
            constants=self.constants,
            delegates=self.blobs,
            named_data=named if self.delegates else {},
        )

    def _step(self, number: int) -> Instruction:
        call = self.plan.chains[0].instructions[number].instr_args
        self.written = {*self.effects[number].writes, *self.written}
        if isinstance(call, DelegateCall):
            self._delegate(self.plan.delegates[call.delegate_index])
            made: Any = DelegateCall(delegate_index=len(self.delegates) - 1)
        else:
            assert isinstance(call, KernelCall)
            self.operators.append(self.plan.operators[call.op_index])
            made = KernelCall(op_index=len(self.operators) - 1)
        made.args = [self._slot(slot) for slot in call.args]
        return Instruction(instr_args=made)

    def _delegate(self, delegate: BackendDelegate) -> None:
        place = delegate.processed
        if place is not None and place.location == DataLocation.SEGMENT:
            self.blobs.append(self.pte.delegates[place.index])
            place = BackendDelegateDataReference(location=place.location, index=len(self.blobs) - 1)
        self.delegates.append(replace(delegate, processed=place))

    def _share(self, *slots: int) -> None:
        """Give slots one piece of memory, as far from each other as they were."""
        tensors: list[Any] = [self.plan.values[slot].val for slot in slots]
        starts = [t.allocation_info.memory_offset_low for t in tensors]
        for slot, start in zip(slots, starts, strict=True):
            self.places[slot] = self.size + start - min(starts)
        ends = [self.places[s] + _room(t) for s, t in zip(slots, tensors, strict=True)]
        self.size = -(-max(ends) // ALIGNMENT) * ALIGNMENT

    def _slot(self, slot: int) -> int:
        if slot < 0 or slot in self.slots:
            return self.slots.get(slot, slot)
        value: Any = copy.copy(self.plan.values[slot].val)
        if isinstance(value, Tensor):
            self._place(slot, value)
        elif isinstance(value, (IntList, TensorList, OptionalTensorList)):
            value.items = [self._slot(item) for item in value.items]
        elif type(value) in NUMBERS and slot in self.before:
            setattr(value, NUMBERS[type(value)], self.before[slot])
        self.values.append(EValue(val=value))
        self.slots[slot] = len(self.values) - 1
        return self.slots[slot]

    def _place(self, slot: int, value: Tensor) -> None:
        if value.allocation_info is None and 0 < value.data_buffer_idx <= len(self.pte.constants):
            self.constants.append(self.pte.constants[value.data_buffer_idx - 1])
            value.data_buffer_idx = len(self.constants)
            return
        if slot not in self.found.expected and slot not in self.written and slot in self.before:
            self.inputs.append(slot)
        start = self.places.get(slot, self.size)
        value.data_buffer_idx, value.extra_tensor_info = 0, None
        value.allocation_info = AllocationDetails(memory_id=1, memory_offset_low=start)
        self.size += 0 if slot in self.places else -(-_room(value) // ALIGNMENT) * ALIGNMENT


def _room(value: Any) -> int:
    """Return bytes that hold a tensor of any type."""
    return int(np.prod(list(value.sizes), dtype=np.int64)) * ALIGNMENT
