# SPDX-License-Identifier: BSD-3-Clause
"""What a comparison of two programs is between: a file that runs somewhere, an exported program."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from etx_exir.ir.provenance import module_path, source_line
from etx_schema import DelegateCall, KernelCall, PteFile
from etx_schema import Tensor as WireTensor
from etx_schema.inspect.reads_writes import Effect, effects
from etx_schema.problem import Origins
from torch import Tensor
from torch.export import ExportedProgram

from etx_devtools.compare.arrays import as_tensor, distance_of
from etx_devtools.compare.engine import Execution
from etx_devtools.compare.inputs import kind_of_node, kind_of_value
from etx_devtools.compare.memory import Memory, UnknownValueError, initial_arenas, state_slots
from etx_devtools.compare.notes import Note, notes_of
from etx_devtools.compare.operators import NoOperatorError, eager_results
from etx_devtools.compare.record import Recording, Step, find_method, shapes_of
from etx_devtools.compare.reference import Reference
from etx_devtools.compare.tolerance import reduction_length, tolerance

__all__ = ["ExportedSide", "FileSide", "Side", "SideValue"]

Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class SideValue:
    """One result, in the model's order of dimensions, and how it is paired."""

    number: int
    slot: int
    name: str
    place: Key
    plain: Tensor


class FileSide:
    """One of the programs: what it computed in a call, and what its instructions read."""

    def __init__(self, pte: PteFile, method: str, source: Execution) -> None:
        self.pte, self.method, self.source = pte, method, source
        self.plan = pte.program.execution_plan[find_method(pte, method)]
        self.notes, self.origins = notes_of(pte, method).values, Origins.of(pte.named_data)
        self.arenas, self.effects = initial_arenas(pte, self.plan), effects(self.plan)
        self.steps = self.plan.chains[0].instructions
        self.state = {name: slot for slot, name in state_slots(self.plan)}
        self.names = {note.name for note in self.notes.values()}
        self.kinds = [kind_of_value(self.plan.values[slot].val) for slot in self.plan.inputs]

    def run(self, inputs: Sequence[Any]) -> Recording:
        """Execute with flat inputs."""
        recording = self.source(list(inputs))
        self.shapes = shapes_of(recording)
        self.memory = Memory(self.pte, self.plan, [as_tensor(x) for x in inputs], self.arenas)
        return recording

    def values(self, step: Step) -> Iterator[SideValue]:
        """Yield the results of an instruction that ran."""
        place = self.origins.get(self.method, step.instruction)
        where = (place.get("module", ""), place.get("source", ""))
        for slot, got in step.values:
            if isinstance(got, Tensor):
                note = self.notes.get(slot, Note(""))
                plain = note.undo(got) if note.name and note.holds(got) else got
                yield SideValue(step.instruction, slot, note.name, where, plain)

    def after(self, step: Step) -> None:
        """Let memory be what it is after an instruction."""
        for slot, got in step.values:
            self.memory.write(slot, got, step.instruction)
        self.memory.step(self.steps[step.instruction])

    def buffers(self) -> dict[str, Tensor]:
        """Return what buffers that change hold now."""
        return {name: self.memory.read(slot) for name, slot in self.state.items()}

    def missing(self, ran: Collection[int]) -> int:
        """Return how many instructions are not among those that `ran`."""
        return sum(
            isinstance(s.instr_args, (KernelCall, DelegateCall)) and n not in ran
            for n, s in enumerate(self.steps)
        )

    def kernel_error(self, value: SideValue) -> bool | None:
        """Say whether a kernel departs from torch's operator on what it read; None: unknown."""
        number, slot = value.number, value.slot
        note = self.notes.get(slot)
        got = note.apply(value.plain) if note is not None else value.plain
        call = self.steps[number].instr_args
        if not isinstance(call, KernelCall):
            return None
        try:
            here = eager_results(self.plan, call, self.memory.read, self.shapes).get(slot)
        except (NoOperatorError, UnknownValueError):
            return None
        if not isinstance(here, Tensor) or here.shape != got.shape:
            return None
        far = distance_of(got, here)
        return bool(far.problem) or not far.max_abs <= tolerance(
            here, got.dtype, self.terms(number)
        )

    def terms(self, number: int) -> int:
        """Return how many numbers a result of an instruction may be a sum of."""
        if isinstance(self.steps[number].instr_args, DelegateCall):
            return 1 << 12
        sizes = [self.plan.values[slot].val for slot in self.effects[number].reads]
        return max(
            (max(v.sizes, default=1) ** 2 for v in sizes if isinstance(v, WireTensor)), default=1
        )


class ExportedSide:
    """An exported program in eager PyTorch; its instructions are the operators of its graphs."""

    def __init__(self, program: ExportedProgram) -> None:
        self.reference = Reference(program)
        self.nodes = list(self.reference.values.values())
        numbers = {value.node: number for number, value in enumerate(self.nodes)}
        self.effects = [
            Effect(v.operator, tuple(numbers[n] for n in v.node.all_input_nodes if n in numbers))
            for v in self.nodes
        ]
        self.numbers = {value.name: number for number, value in enumerate(self.nodes)}
        self.names = set(self.numbers)
        self.kinds = [kind_of_node(node) for node in self.reference.inputs()]

    def run(self, inputs: Sequence[Any]) -> Recording:
        """Execute with flat inputs."""
        bound = self.reference.bind([as_tensor(item) for item in inputs])
        found, returned = self.reference.run(bound)
        self.reference.new_state(returned)
        steps = [
            Step(self.numbers[name], ((self.numbers[name], value),))
            for name, turns in found.items()
            for value in turns
        ]
        return Recording(steps, self.reference.user_outputs(returned))

    def values(self, step: Step) -> Iterator[SideValue]:
        """Yield the result of an operator that ran."""
        value = self.nodes[step.instruction]
        where = (module_path(value.node) or "", source_line(value.node) or "")
        for slot, got in step.values:
            if isinstance(got, Tensor):
                yield SideValue(step.instruction, slot, value.name, where, got)

    def after(self, step: Step) -> None:
        """Do nothing: a graph has no memory that others write."""

    def buffers(self) -> dict[str, Tensor]:
        """Return what buffers that change hold now."""
        return self.reference.mutated()

    def missing(self, ran: Collection[int]) -> int:
        """Return how many operators are not among those that `ran`."""
        return len(self.nodes) - len(set(ran))

    def kernel_error(self, value: SideValue) -> bool | None:
        """Say that eager's operators are right."""
        return False

    def terms(self, number: int) -> int:
        """Return how many numbers a result of an operator may be a sum of."""
        return reduction_length([self.nodes[number].node])


Side = FileSide | ExportedSide
