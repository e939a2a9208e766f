# SPDX-License-Identifier: BSD-3-Clause
"""The planned memory of a file: which tensor lies where, and over which steps it is live.

The bytes of an arena are cut where tensors begin and end; live ranges are those of the pieces.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from etx_schema._generated.program import ExecutionPlan, Tensor
from etx_schema.bits import set_bits
from etx_schema.dtypes import dtype_name, tensor_nbytes
from etx_schema.inspect.arenas import Allocation, Arena, MethodMemory
from etx_schema.inspect.live_bytes import LiveBytes
from etx_schema.inspect.pieces import Span, joined
from etx_schema.problem import Origins
from etx_schema.pte import PteFile


def memory_of(pte: PteFile, alignment: int = 16) -> list[MethodMemory]:
    """Return the planned memory of every method that has instructions.

    Ends of tensors count as rounded up to `alignment` bytes.
    """
    origins = Origins.of(pte.named_data)
    return [
        _Method(plan, origins, alignment).memory()
        for plan in pte.program.execution_plan
        if any(chain.instructions for chain in plan.chains)
    ]


class _Method:
    def __init__(self, plan: ExecutionPlan, origins: Origins, alignment: int) -> None:
        self.plan, self.origins = plan, origins
        self.live = LiveBytes(plan, alignment)
        self.effects, self.pieces = self.live.effects, self.live.pieces
        self.writers = self._writers()

    def memory(self) -> MethodMemory:
        """Return the arenas."""
        sizes, steps = self.plan.non_const_buffer_sizes, len(self.live.steps)
        arenas = {
            memory_id: Arena(memory_id, sizes[memory_id], [0] * steps)
            for memory_id in range(1, len(sizes))
        }
        changes = {memory_id: [0] * (steps + 1) for memory_id in arenas}
        found: dict[tuple[int, int, int, int], list[Span]] = {}
        for number, ranges in enumerate(self._live_ranges()):
            place = self.pieces.places[number]
            for first, last in ranges:
                if place.memory_id in changes:
                    changes[place.memory_id][first] += place.end - place.start
                    changes[place.memory_id][last + 1] -= place.end - place.start
                for part in self._by_owner(number, first, last):
                    found.setdefault((place.memory_id, *part), []).append(place)
        for memory_id, arena in arenas.items():
            now = 0
            for step in range(steps):
                now += changes[memory_id][step]
                arena.load[step] = now
        for (memory_id, value, first, last), places in found.items():
            if memory_id in arenas:
                for start, end in joined(places):
                    allocation = self._allocation(value, Span(memory_id, start, end), first, last)
                    arenas[memory_id].allocations.append(allocation)
        for arena in arenas.values():
            arena.allocations.sort(key=lambda each: (each.first, each.start))
        names = [effect.op for effect in self.effects]
        return MethodMemory(self.plan.name or "", names, list(arenas.values()))

    def _live_ranges(self) -> list[list[tuple[int, int]]]:
        """Return the live ranges of each piece: first and last step."""
        ranges: list[list[tuple[int, int]]] = [[] for _ in self.pieces.places]
        opened = [0] * len(ranges)
        before = 0
        for step, bits in enumerate([*self.live.steps, 0]):
            for number in set_bits(bits ^ before):
                if before >> number & 1:
                    ranges[number].append((opened[number], step - 1))
                else:
                    opened[number] = step
            before = bits
        return ranges

    def _writers(self) -> list[list[tuple[int, int]]]:
        """Return for every piece who writes it at which step, in the order of the instructions."""
        writers: list[list[tuple[int, int]]] = [[] for _ in self.pieces.places]
        spans = self.live.spans
        events = [(0, value) for value in (*self.live.state, *self.plan.inputs)]
        for i, effect in enumerate(self.effects):
            events += [(i + 1, value) for value in (*effect.writes, *effect.updates)]
        for step, value in events:
            if value in spans:
                for number in set_bits(self.pieces.mask(spans[value])):
                    writers[number].append((step, value))
        return writers

    def _by_owner(self, number: int, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Cut a live range of a piece where another tensor takes it over."""
        writers = self.writers[number]
        at = bisect_left(writers, (first + 1, -1))
        owner, begin = writers[at - 1][1] if at else -1, first
        for step, value in islice(writers, at, None):
            if step > last:
                break
            if value != owner:
                if owner >= 0:
                    yield owner, begin, step - 1
                    begin = step
                owner = value
        if owner >= 0:
            yield owner, begin, last

    def _allocation(self, value: int, span: Span, first: int, last: int) -> Allocation:
        tensor = self.plan.values[value].val
        assert isinstance(tensor, Tensor)
        kind = self._kind(value)
        writer = self._writer(value, first)
        origin = self.origins.get(self.plan.name or "", writer) if writer >= 0 else {}
        return Allocation(
            value=value,
            memory_id=span.memory_id,
            start=span.start,
            end=span.end,
            first=first,
            last=last,
            name=self._name(value, tensor, kind),
            kind=kind,
            op=self.effects[writer].op if writer >= 0 else kind,
            module=origin.get("module", ""),
            source=origin.get("source", ""),
            dtype=dtype_name(tensor.scalar_type),
            sizes=tuple(tensor.sizes),
            nbytes=tensor_nbytes(tensor),
        )

    def _kind(self, value: int) -> str:
        kinds = {
            "state": self.live.state,
            "input": self.plan.inputs,
            "output": self.plan.outputs,
        }
        return next((kind for kind, values in kinds.items() if value in values), "intermediate")

    def _name(self, value: int, tensor: Tensor, kind: str) -> str:
        if kind == "input":
            return f"in{self.plan.inputs.index(value)}"
        extra = tensor.extra_tensor_info
        return (extra.fully_qualified_name if extra is not None else None) or f"%{value}"

    def _writer(self, value: int, step: int) -> int:
        """Return the last instruction up to `step` that writes `value`, -1 for none."""
        for i in range(min(step, len(self.effects)) - 1, -1, -1):
            if value in self.effects[i].writes or value in self.effects[i].updates:
                return i
        return -1
