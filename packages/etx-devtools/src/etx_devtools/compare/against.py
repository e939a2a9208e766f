# SPDX-License-Identifier: BSD-3-Clause
"""Two programs with the same inputs, value by value.

Values are paired by the name that the exported model has for them; those without a name, and those
of a model that was quantized otherwise, by module, line and shape. Integers of two programs whose
types differ are compared after the straight line that fits best, since scales are not in a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from etx_schema import DelegateCall, EtxError, KernelCall, PteFile
from etx_schema import Tensor as WireTensor
from etx_schema.inspect.reads_writes import effects
from etx_schema.problem import Origins
from torch import Tensor

from etx_devtools.compare.arrays import as_tensor, distance_of, dtype_text
from etx_devtools.compare.checks import Check, Comparison
from etx_devtools.compare.engine import Execution
from etx_devtools.compare.memory import Memory, UnknownValueError, initial_arenas, state_slots
from etx_devtools.compare.metrics import Distance
from etx_devtools.compare.notes import Note, notes_of
from etx_devtools.compare.operators import NoOperatorError, eager_results
from etx_devtools.compare.record import Recording, Step, find_method, shapes_of
from etx_devtools.compare.tolerance import tolerance

__all__ = ["Pair"]

GROWTH = 16.0
SIMILAR = 0.9
NEAREST = 12
Key = tuple[str, str]


@dataclass(frozen=True, eq=False)
class _Value:
    """One result, in the model's order of dimensions, and how it is paired."""

    number: int
    slot: int
    name: str
    place: Key
    plain: Tensor


class _Side:
    """One of the programs: what it computed in a call, and what its instructions read."""

    def __init__(self, pte: PteFile, method: str, source: Execution) -> None:
        self.pte, self.method, self.source = pte, method, source
        self.plan = pte.program.execution_plan[find_method(pte, method)]
        self.notes, self.origins = notes_of(pte, method).values, Origins.of(pte.named_data)
        self.arenas, self.effects = initial_arenas(pte, self.plan), effects(self.plan)
        self.steps = self.plan.chains[0].instructions
        self.state = {name: slot for slot, name in state_slots(self.plan)}

    def run(self, inputs: Sequence[Any]) -> Recording:
        recording = self.source(list(inputs))
        self.shapes = shapes_of(recording)
        self.memory = Memory(self.pte, self.plan, [as_tensor(x) for x in inputs], self.arenas)
        return recording

    def values(self, step: Step) -> Iterator[_Value]:
        place = self.origins.get(self.method, step.instruction)
        where = (place.get("module", ""), place.get("source", ""))
        for slot, got in step.values:
            if isinstance(got, Tensor):
                note = self.notes.get(slot, Note(""))
                plain = note.undo(got) if note.name and note.fits(got) else got
                yield _Value(step.instruction, slot, note.name, where, plain)

    def after(self, step: Step) -> None:
        for slot, got in step.values:
            self.memory.write(slot, got, step.instruction)
        self.memory.step(self.steps[step.instruction])

    def kernel_error(self, number: int, slot: int, got: Tensor) -> bool | None:
        """Say whether a kernel departs from torch's operator on what it read; None: unknown."""
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


class Pair:
    """One method of two loaded programs; buffers keep their values from call to call."""

    def __init__(
        self, first: tuple[PteFile, Execution], second: tuple[PteFile, Execution], method: str
    ) -> None:
        self.first, self.second = (_Side(pte, method, run) for pte, run in (first, second))
        self.method = method
        kinds = [[_kind(side, slot) for slot in side.plan.inputs] for side in self._sides()]
        if kinds[0] != kinds[1]:
            shown = " and ".join("(" + ", ".join(k) + ")" for k in kinds)
            raise EtxError(
                f"{method}: the programs take other inputs: {shown}; give two files of one model"
            )

    def _sides(self) -> tuple[_Side, _Side]:
        return self.first, self.second

    def call(self, inputs: Sequence[Any]) -> Comparison:
        """Run both; compare every value of the first with that of the second."""
        runs = [side.run(inputs) for side in self._sides()]
        others = _Others(self.second, runs[1], {n.name for n in self.first.notes.values()})
        unpaired: list[int] = []
        checks: list[Check] = []
        errors: dict[int, float] = {}
        for step in runs[0].steps:
            arrived = max((errors.get(s, 0.0) for s in self._reads(step.instruction)), default=0.0)
            for value in self.first.values(step):
                check = self._check(value, others.take(value), arrived)
                checks.append(check)
                if check.made is None:
                    unpaired.append(check.instruction)
                else:
                    check.suspects = tuple(unpaired) if check.wrong else ()
                    unpaired = []
                errors[value.slot] = _share(check.made, value.plain) if check.made else arrived
            self.first.after(step)
            self._follow_view(step.instruction, errors)
        ran = {step.instruction for step in runs[0].steps}
        missing = sum(
            isinstance(s.instr_args, (KernelCall, DelegateCall)) and n not in ran
            for n, s in enumerate(self.first.steps)
        )
        outputs = [_output(a, b) for a, b in zip(runs[0].outputs, runs[1].outputs, strict=False)]
        return Comparison(self.method, checks, outputs, self._state(), None, missing)

    def _reads(self, number: int) -> Sequence[int]:
        effect = self.first.effects[number]
        return (*effect.reads, *effect.updates)

    def _follow_view(self, number: int, errors: dict[int, float]) -> None:
        alias = self.first.effects[number].alias
        if alias is not None and alias[1] in errors:
            errors[alias[0]] = errors[alias[1]]

    def _check(self, value: _Value, other: tuple[_Value, bool] | None, arrived: float) -> Check:
        number, plain = value.number, value.plain
        effect = self.first.effects[number]
        module, source = value.place
        check = Check(number, effect.op, value.slot, module, source, value.name)
        check.dtype, check.shape = dtype_text(plain.dtype), tuple(plain.shape)
        if other is None:
            check.reason = "the other program has no value of this name, or place and shape"
            return check
        right, is_same = other
        expected = right.plain if is_same else _fitted(right.plain, plain)
        check.by, check.arrived = "program", distance_of(plain, expected)
        check.made = check.arrived
        check.cause = f"compared with instruction {right.number} of the other"
        is_float = plain.dtype.is_floating_point and right.plain.dtype.is_floating_point
        terms = max(self.first.terms(number), self.second.terms(right.number))
        rounding = tolerance(expected, plain.dtype, terms) if is_float else 1.0
        size = _largest(expected)
        if not is_same:
            rounding = size
        check.allowed = rounding + GROWTH * arrived * size
        if check.wrong:
            check.cause = self._cause(value, right)
        return check

    def _cause(self, value: _Value, right: _Value) -> str:
        at = f"instruction {right.number} of the other program"
        found = self.first.kernel_error(value.number, value.slot, self._held(value))
        if found is None:
            return f"it departs from {at}"
        if found:
            return f"its kernel computes something else than torch's operator; compare {at}"
        return (
            "its kernel is right on what it read: weights, arguments or operator differ from "
            f"those of {at}, or that one's kernel is wrong"
        )

    def _held(self, value: _Value) -> Tensor:
        note = self.first.notes.get(value.slot)
        return note.apply(value.plain) if note is not None else value.plain

    def _state(self) -> dict[str, Distance]:
        found = {}
        for name, slot in self.first.state.items():
            other = self.second.state.get(name)
            if other is not None:
                found[name] = distance_of(
                    self.first.memory.read(slot), self.second.memory.read(other)
                )
        return found


class _Others:
    """The values of the second program, each given to one of the first."""

    def __init__(self, side: _Side, recording: Recording, known: Collection[str]) -> None:
        self.known = known
        self.named: dict[str, list[_Value]] = {}
        self.placed: list[_Value] = []
        for step in recording.steps:
            for value in side.values(step):
                self.placed.append(value)
                if value.name:
                    self.named.setdefault(value.name, []).append(value)
            side.after(step)
        self.next = 0

    def take(self, value: _Value) -> tuple[_Value, bool] | None:
        """Return the other's value, and whether it means the same numbers."""
        same = self.named.get(value.name, [])
        if same and same[0].plain.shape == value.plain.shape:
            found = same.pop(0)
            self.next = max(self.next, self.placed.index(found))
            return found, found.plain.dtype == value.plain.dtype
        if value.name and same:
            return same.pop(0), True
        alike = [
            (place, other)
            for place, other in enumerate(self.placed[self.next :], self.next)
            if other.plain.shape == value.plain.shape and _may_be(value, other)
        ][:NEAREST]
        fits = [(_similar(value.plain, o.plain), -place, o) for place, o in alike]
        best = max(fits, key=lambda item: item[:2], default=None)
        if best is None or best[0] < SIMILAR:
            return self._instead(value)
        self.next = -best[1]
        return best[2], best[2].plain.dtype == value.plain.dtype and not value.name

    def _instead(self, value: _Value) -> tuple[_Value, bool] | None:
        """Return what the other computes in the same module where this is another operator."""
        for place, other in enumerate(self.placed[self.next :], self.next):
            is_alike = (
                other.plain.shape == value.plain.shape and other.plain.dtype == value.plain.dtype
            )
            if is_alike and other.place[0] == value.place[0] and other.name not in self.known:
                self.next = place
                return other, True
        return None


def _may_be(value: _Value, other: _Value) -> bool:
    """Whether places say nothing else than that both come of one operator of the model."""
    return not (value.place[1] and other.place[1]) or value.place[1] == other.place[1]


def _similar(a: Tensor, b: Tensor) -> float:
    x, y = (t.double().flatten() for t in (a, b))
    if not x.numel() or a.is_complex() or b.is_complex():
        return 0.0
    x, y = x - x.mean(), y - y.mean()
    size = float(x.norm() * y.norm())
    return float(x @ y) / size if size else float(torch.equal(x, y))


def _fitted(other: Tensor, like: Tensor) -> Tensor:
    """Return the straight line of `other` that is nearest to `like`, in its type."""
    x, y = other.double().flatten(), like.double().flatten()
    centred = x - x.mean()
    power = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / power if power else 0.0
    line = (other.double() - x.mean()) * slope + y.mean()
    return line if like.dtype.is_floating_point else line.float()


def _largest(tensor: Tensor) -> float:
    if not tensor.numel() or tensor.dtype == torch.bool:
        return 1.0
    return float(tensor.abs().double().nan_to_num(0.0, 0.0, 0.0).max())


def _share(far: Distance, plain: Tensor) -> float:
    size = _largest(plain)
    return far.max_abs / size if size else far.max_abs


def _output(got: Any, expected: Any) -> Distance | None:
    both = as_tensor(got), as_tensor(expected)
    return distance_of(*both) if all(isinstance(x, Tensor) for x in both) else None


def _kind(side: _Side, slot: int) -> str:
    wire = side.plan.values[slot].val
    if not isinstance(wire, WireTensor):
        return type(wire).__name__
    shape = ["?" if wire.shape_dynamism else str(size) for size in wire.sizes]
    return f"{wire.scalar_type.name.lower()}[{', '.join(shape)}]"
