# SPDX-License-Identifier: BSD-3-Clause
"""Follow a method through its loops: what each turn begins with, on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from etx_schema import ExecutionPlan, JumpFalseCall, KernelCall
from etx_schema.inspect.reads_writes import effects

from etx_devtools.compare.notes import Notes
from etx_devtools.compare.reference import Reference

__all__ = ["Loops"]


@dataclass
class _Loop:
    """Instructions `start` to `end`, which jumps back; `paths` are the graphs on each side."""

    start: int
    end: int
    depth: int
    paths: list[str | None]
    turns: int = 0
    goes_on: bool | None = None

    def __contains__(self, number: int) -> bool:
        return self.start <= number <= self.end


class Loops:
    """The loops of a method, told of each instruction before it is looked at.

    `sides` are models with what their placeholders hold; `cuts` the device's values so far.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        notes: Notes,
        sides: Sequence[tuple[Reference, Any]],
        cuts: dict[str, Any],
    ) -> None:
        self.plan, self.notes, self.sides, self.cuts = plan, notes, sides, cuts
        self.steps = plan.chains[0].instructions
        self.loops = self._found()
        self.active: list[_Loop] = []
        self.previous = -1

    def turn(self, number: int) -> int:
        """Return how often the innermost loop around `number` has come to its end."""
        return next((loop.turns for loop in reversed(self.active) if number in loop), 0)

    def reach(self, number: int) -> Iterator[tuple[int, str]]:
        """Go on to `number`; yield the instructions that decided otherwise than the model does."""
        while self.active and number not in self.active[-1]:
            loop = self.active.pop()
            if loop.goes_on:
                yield (
                    self._decider(loop),
                    f"the loop ends after {loop.turns} turns, the model's goes on",
                )
            self._leave(loop)
        for loop in self.active:
            if self.previous == loop.end and number <= self.previous:
                if loop.goes_on is False:
                    yield self._decider(loop), f"the loop goes on after {loop.turns} turns"
                loop.turns += 1
                self._turn(loop)
        for loop in self.loops:
            if number in loop and loop not in self.active:
                loop.turns = 0
                self.active.append(loop)
                self._enter(loop)
        self.previous = number

    def _found(self) -> list[_Loop]:
        spans = sorted(
            (call.destination_instruction, number)
            for number, step in enumerate(self.steps)
            if isinstance(call := step.instr_args, JumpFalseCall)
            and call.destination_instruction <= number
        )
        spans.sort(key=lambda span: (span[0], -span[1]))
        written = [
            [note.name for slot in (*e.writes, *e.updates) if (note := self.notes.values.get(slot))]
            for e in effects(self.plan)
        ]
        loops = []
        for start, end in spans:
            depth = sum(a <= start and end <= b for a, b in spans) - 1
            names = [name for number in range(start, end + 1) for name in written[number]]
            paths = [_path(side, names, depth) for side, _ in self.sides]
            loops.append(_Loop(start, end, depth, paths))
        return loops

    def _enter(self, loop: _Loop) -> None:
        for (side, bound), path in zip(self.sides, loop.paths, strict=True):
            if path is not None:
                try:
                    side.enter(path, self.cuts, bound)
                except LookupError:
                    side.forget(path)
        self._ask(loop)

    def _turn(self, loop: _Loop) -> None:
        for (side, bound), path in zip(self.sides, loop.paths, strict=True):
            if path is not None:
                try:
                    side.turn(path, self.cuts, bound)
                except LookupError:
                    side.forget(path)
        self._drop(loop)
        self._ask(loop)

    def _leave(self, loop: _Loop) -> None:
        found: dict[str, Any] = {}
        for (side, _), path in zip(self.sides, loop.paths, strict=True):
            if path is not None:
                found |= side.leave(path)
        self._drop(loop)
        self.cuts.update(found)

    def _drop(self, loop: _Loop) -> None:
        """Forget the values of the turn before."""
        prefixes = [
            prefix
            for (side, _), path in zip(self.sides, loop.paths, strict=True)
            if path is not None
            for prefix in side.graphs_of(path)
        ]
        for name in [n for n in self.cuts if any(n.startswith(p) for p in prefixes)]:
            del self.cuts[name]

    def _ask(self, loop: _Loop) -> None:
        """Ask the model whether there is another turn."""
        side, bound = self.sides[0]
        path = loop.paths[0]
        loop.goes_on = None if path is None else side.goes_on(path, self.cuts, bound)

    def _decider(self, loop: _Loop) -> int:
        """Return the instruction that computes whether the loop goes on."""
        for number in range(loop.start, loop.end + 1):
            call = self.steps[number].instr_args
            if isinstance(call, JumpFalseCall) and call.destination_instruction > loop.end:
                slot = call.cond_value_index
                for before in range(number - 1, loop.start - 1, -1):
                    made = self.steps[before].instr_args
                    if isinstance(made, KernelCall) and slot in made.args[-1:]:
                        return before
                return number
        return loop.end


def _path(side: Reference, names: Sequence[str], depth: int) -> str | None:
    for name in names:
        paths = side.loop_paths(name)
        if depth < len(paths):
            return paths[depth]
    return None
