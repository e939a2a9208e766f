# SPDX-License-Identifier: BSD-3-Clause
"""One instruction as a program of its own, with what it got and what it should have returned."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema import (
    AllocationDetails,
    Bool,
    Chain,
    Double,
    EtxError,
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

__all__ = ["Found", "write_reduced"]

NUMBERS = {Int: "int_val", Double: "double_val", Bool: "bool_val"}
ALIGNMENT = 16


@dataclass(frozen=True)
class Found:
    """An instruction that is wrong: what slots held before it, and its right result by slot."""

    instruction: int
    before: dict[int, Any]
    expected: dict[int, Any]


def write_reduced(pte: PteFile, plan: ExecutionPlan, found: Found, path: str | Path) -> list[Path]:
    """Write the program to `path`, its inputs and the right result to `.npz` files beside it.

    Return the three paths. Errors: EtxError where the instruction is the call of a delegate.
    """
    call = plan.chains[0].instructions[found.instruction].instr_args
    if not isinstance(call, KernelCall):
        raise EtxError(
            f"--reduce: instruction {found.instruction} calls a delegate; --inside compares what "
            "it computes"
        )
    target = Path(path)
    writer = _Writer(pte, plan, found)
    names = [target, target.with_suffix(".npz"), target.with_suffix(".expected.npz")]
    write_pte(writer.program(call), target)
    np.savez(names[1], **_numbered([found.before[slot] for slot in writer.inputs]))
    np.savez(names[2], **_numbered([found.expected[slot] for slot in writer.outputs]))
    return names


def _numbered(tensors: list[Any]) -> dict[str, Any]:
    return {str(index): tensor.numpy() for index, tensor in enumerate(tensors)}


class _Writer:
    def __init__(self, pte: PteFile, plan: ExecutionPlan, found: Found) -> None:
        self.pte, self.plan, self.found = pte, plan, found
        self.values: list[EValue] = []
        self.slots: dict[int, int] = {}
        self.constants: list[Any] = []
        self.inputs: list[int] = []
        self.outputs = sorted(found.expected)
        self.size = 0

    def program(self, call: KernelCall) -> PteFile:
        """Return the program of one call."""
        args = [self._slot(slot) for slot in call.args]
        plan = ExecutionPlan(
            name=self.plan.name,
            values=self.values,
            inputs=[self.slots[slot] for slot in self.inputs],
            outputs=[self.slots[slot] for slot in self.outputs],
            chains=[Chain(instructions=[Instruction(instr_args=KernelCall(args=args))])],
            operators=[self.plan.operators[call.op_index]],
            non_const_buffer_sizes=[0, max(self.size, ALIGNMENT)],
        )
        program = Program(version=self.pte.program.version, execution_plan=[plan])
        return PteFile(program=program, constants=self.constants)

    def _slot(self, slot: int) -> int:
        if slot < 0 or slot in self.slots:
            return self.slots.get(slot, slot)
        value: Any = copy.copy(self.plan.values[slot].val)
        if isinstance(value, Tensor):
            self._place(slot, value)
        elif isinstance(value, (IntList, TensorList, OptionalTensorList)):
            value.items = [self._slot(item) for item in value.items]
        elif type(value) in NUMBERS and slot in self.found.before:
            setattr(value, NUMBERS[type(value)], self.found.before[slot])
        self.values.append(EValue(val=value))
        self.slots[slot] = len(self.values) - 1
        return self.slots[slot]

    def _place(self, slot: int, value: Tensor) -> None:
        if value.allocation_info is None and 0 < value.data_buffer_idx <= len(self.pte.constants):
            self.constants.append(self.pte.constants[value.data_buffer_idx - 1])
            value.data_buffer_idx = len(self.constants)
            return
        if slot not in self.found.expected and slot in self.found.before:
            self.inputs.append(slot)
        value.data_buffer_idx, value.extra_tensor_info = 0, None
        value.allocation_info = AllocationDetails(memory_id=1, memory_offset_low=self.size)
        count = int(np.prod(list(value.sizes), dtype=np.int64))
        self.size += -(-count * 16 // ALIGNMENT) * ALIGNMENT
