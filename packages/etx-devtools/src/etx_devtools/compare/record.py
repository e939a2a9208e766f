# SPDX-License-Identifier: BSD-3-Clause
"""Every value of one execution: a program rewritten so that it returns what it computes.

After each instruction its results are copied to memory of their own, which the method returns
beside its outputs. The plan of the program itself stays as it is, so that values that overwrite
each other still do, and what runs the program needs to know nothing of this.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from etx_schema import (
    AllocationDetails,
    Bool,
    Double,
    EtxError,
    EValue,
    ExecutionPlan,
    Instruction,
    Int,
    JumpFalseCall,
    KernelCall,
    Null,
    Operator,
    PteFile,
    Tensor,
    serialize_pte,
)
from etx_schema.inspect.reads_writes import effects

__all__ = ["Recorder", "Tap", "find_method"]

ALIGNMENT = 16
NUMBERS = (Int, Double, Bool)
WIDTHS = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 9: 8, 10: 16, 11: 1, 15: 2}


@dataclass(frozen=True)
class Tap:
    """One result of one instruction: the value's slot, and which output of the recorder it is."""

    instruction: int
    slot: int
    output: int


def find_method(pte: PteFile, name: str) -> int:
    """Return the index of method `name`; EtxError where there is none."""
    names = [plan.name or "" for plan in pte.program.execution_plan]
    if name not in names:
        raise EtxError(f"the program has no method {name!r} (it has: {', '.join(sorted(names))})")
    return names.index(name)


class Recorder:
    """A method that also returns the results of its instructions.

    `taps` say which output is which result; the first `outputs` are those of the method itself.
    """

    def __init__(self, pte: PteFile, method: str = "forward") -> None:
        self.index = find_method(pte, method)
        plan = pte.program.execution_plan[self.index]
        self.taps: list[Tap] = []
        self.outputs = len(plan.outputs)
        self.pte = copy.copy(pte)
        self.pte.program = copy.copy(pte.program)
        self.pte.program.execution_plan = list(pte.program.execution_plan)
        self.pte.program.execution_plan[self.index] = self._rewritten(plan)

    def content(self) -> bytes:
        """Return the bytes of the rewritten program."""
        return serialize_pte(self.pte)

    def _rewritten(self, plan: ExecutionPlan) -> ExecutionPlan:
        result = copy.copy(plan)
        result.values, result.operators = list(plan.values), list(plan.operators)
        result.non_const_buffer_sizes = list(plan.non_const_buffer_sizes) or [0]
        result.container_meta_type = None
        writer = _Writer(result)
        chain = copy.copy(plan.chains[0])
        outputs: list[int] = list(plan.outputs)
        instructions: list[Instruction] = []
        places: list[int] = []
        found = effects(plan)
        for number, step in enumerate(chain.instructions):
            places.append(len(instructions))
            instructions.append(step)
            written = [*found[number].writes, *found[number].updates]
            for slot in dict.fromkeys(written):
                made = writer.copy(slot)
                if made is not None:
                    instructions.append(made[1])
                    self.taps.append(Tap(number, slot, len(outputs)))
                    outputs.append(made[0])
            for slot in _numbers(plan, step):
                self.taps.append(Tap(number, slot, len(outputs)))
                outputs.append(slot)
        places.append(len(instructions))
        chain.instructions = [_moved(step, places) for step in instructions]
        chain.stacktrace = []
        result.chains = [chain, *plan.chains[1:]]
        result.outputs = outputs
        writer.finish()
        return result


def _numbers(plan: ExecutionPlan, step: Instruction) -> Iterable[int]:
    call = step.instr_args
    if isinstance(call, KernelCall) and call.args:
        last = call.args[-1]
        if isinstance(plan.values[last].val, NUMBERS):
            yield last


def _moved(step: Instruction, places: Sequence[int]) -> Instruction:
    call: Any = step.instr_args
    if not isinstance(call, JumpFalseCall):
        return step
    call = copy.copy(call)
    call.destination_instruction = places[call.destination_instruction]
    return Instruction(instr_args=call)


class _Writer:
    """Adds copies to a plan, each into its own place of one more arena."""

    def __init__(self, plan: ExecutionPlan) -> None:
        self.plan = plan
        self.memory_id = len(plan.non_const_buffer_sizes)
        self.size = 0
        self.operator = next(
            (
                index
                for index, item in enumerate(plan.operators)
                if (item.name, item.overload) == ("aten::clone", "out")
            ),
            len(plan.operators),
        )
        self.added = False

    def copy(self, slot: int) -> tuple[int, Instruction] | None:
        """Return the slot of a copy of `slot` and the instruction that makes it."""
        value = self.plan.values[slot].val
        width = WIDTHS.get(int(value.scalar_type)) if isinstance(value, Tensor) else None
        if not isinstance(value, Tensor) or width is None:
            return None
        if not self.added:
            self.added = True
            if self.operator == len(self.plan.operators):
                self.plan.operators.append(Operator(name="aten::clone", overload="out"))
            self.plan.values.append(EValue(val=Null()))
            self.null = len(self.plan.values) - 1
        kept = copy.copy(value)
        kept.data_buffer_idx, kept.extra_tensor_info = 0, None
        kept.allocation_info = AllocationDetails(
            memory_id=self.memory_id,
            memory_offset_low=self.size & 0xFFFFFFFF,
            memory_offset_high=self.size >> 32,
        )
        count = width
        for size in kept.sizes:
            count *= size
        self.size += -(-count // ALIGNMENT) * ALIGNMENT
        self.plan.values.append(EValue(val=kept))
        made = len(self.plan.values) - 1
        call = KernelCall(op_index=self.operator, args=[slot, self.null, made, made])
        return made, Instruction(instr_args=call)

    def finish(self) -> None:
        """Give the arena its size."""
        if self.added:
            self.plan.non_const_buffer_sizes.append(max(self.size, ALIGNMENT))
