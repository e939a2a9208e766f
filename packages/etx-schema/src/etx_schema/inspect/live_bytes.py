# SPDX-License-Identifier: BSD-3-Clause
"""Which pieces of the planned memory are live at each step, recomputed from the instructions.

A piece is live at an instruction if it was written before and is read after, along any path:
live_in(i) = reads(i) ∪ (live_out(i) − writes(i)), to the fixpoint over jumps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from etx_schema._generated.program import ExecutionPlan, Tensor
from etx_schema.errors import ProgramError
from etx_schema.inspect.pieces import Pieces, spans_of
from etx_schema.inspect.reads_writes import Effect, effects


class LiveBytes:
    """Pieces of one method by step: step 0 is before the first instruction, the last at the end."""

    def __init__(self, plan: ExecutionPlan, alignment: int) -> None:
        self.plan = plan
        self.effects = effects(plan)
        for index, effect in enumerate(self.effects):
            if effect.jump is not None and not 0 <= effect.jump <= len(self.effects):
                raise ProgramError(
                    f"method {plan.name!r}, instruction {index}: it jumps to {effect.jump}, there "
                    f"are {len(self.effects)} instructions"
                )
        self.spans = spans_of(plan, alignment)
        self.pieces = Pieces(self.spans.values())
        self.masks = {value: self.pieces.mask(span) for value, span in self.spans.items()}
        for effect in self.effects:
            if effect.alias is not None:
                value, source = effect.alias
                self.masks[value] = self.masks.get(value, 0) | self.masks.get(source, 0)
        self.state = self._state()
        self.steps = self._steps()

    def _bits(self, values: Iterable[int]) -> int:
        bits = 0
        for value in values:
            bits |= self.masks.get(value, 0)
        return bits

    def _state(self) -> list[int]:
        """Return the tensors that an execution leaves for the next one."""
        found = []
        seen = set(self.plan.inputs)
        covered = self._bits(seen)
        for value in self.spans:
            tensor = self.plan.values[value].val
            assert isinstance(tensor, Tensor)
            if (tensor.data_buffer_idx or tensor.extra_tensor_info) and value not in seen:
                found.append(value)
        seen.update(found)
        covered |= self._bits(found)
        for effect in self.effects:
            for value in effect.reads:
                mask = self.masks.get(value, 0)
                if value in self.spans and value not in seen and not mask & covered:
                    found.append(value)
                seen.add(value)
            written = (*effect.writes, *effect.updates)
            covered |= self._bits(written)
            seen.update(written)
        return found

    def _steps(self) -> list[int]:
        """Return the live pieces of every step."""
        given = self._bits(self.plan.inputs) | self._bits(self.state)
        kept = self._bits(self.plan.outputs) | self._bits(self.state)
        rows = [
            (self._bits(e.reads), self._bits(v for v in e.writes if v in self.spans), e)
            for e in self.effects
        ]
        touched = [w | self._bits(e.updates) for _, w, e in rows]
        after = [_successors(i, effect) for i, effect in enumerate(self.effects)]
        live = _live([(reads, writes) for reads, writes, _ in rows], after, kept)
        reached = _reached(touched, after, given)
        state = self._bits(self.state)
        steps = [given | state]
        for i, wrote in enumerate(touched):
            out = 0
            for successor in after[i]:
                out |= live[successor]
            steps.append((live[i] & reached[i]) | (out & (reached[i] | wrote)) | wrote | state)
        steps.append((kept & reached[-1]) | state)
        return steps


def _live(
    rows: Sequence[tuple[int, int]], after: Sequence[tuple[int, ...]], kept: int
) -> list[int]:
    live = [0] * len(rows) + [kept]
    changed = True
    while changed:
        changed = False
        for i in range(len(rows) - 1, -1, -1):
            out = 0
            for successor in after[i]:
                out |= live[successor]
            now = rows[i][0] | (out & ~rows[i][1])
            changed |= now != live[i]
            live[i] = now
    return live


def _reached(touched: Sequence[int], after: Sequence[tuple[int, ...]], given: int) -> list[int]:
    reached = [given] + [0] * len(touched)
    changed = True
    while changed:
        changed = False
        for i, wrote in enumerate(touched):
            for successor in after[i]:
                now = reached[successor] | reached[i] | wrote
                changed |= now != reached[successor]
                reached[successor] = now
    return reached


def _successors(i: int, effect: Effect) -> tuple[int, ...]:
    if effect.jump is None:
        return (i + 1,)
    return (effect.jump,) if effect.always else (i + 1, effect.jump)
