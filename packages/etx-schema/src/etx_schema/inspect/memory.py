# SPDX-License-Identifier: BSD-3-Clause
"""Which bytes of the planned memory are wanted when, recomputed from the instructions of a file.

The bytes of an arena are cut where tensors begin and end. A piece is wanted at an instruction if
it was written before and is read after, along any path:
live_in(i) = reads(i) ∪ (live_out(i) − writes(i)), to the fixpoint over jumps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from etx_schema._generated.program import ExecutionPlan, Tensor
from etx_schema.dtypes import dtype_name, tensor_nbytes
from etx_schema.inspect.reads_writes import Effect, effects
from etx_schema.problem import Origins
from etx_schema.pte import PteFile


@dataclass(frozen=True)
class Tenant:
    """A planned tensor at bytes `start` to `end` of an arena, moments `first` to `last`.

    Moment 0 is before the first instruction, ``i + 1`` is instruction ``i``, the last moment is
    after the last instruction. `kind` is ``input``, ``output``, ``state`` or ``intermediate``.
    """

    value: int
    memory_id: int
    start: int
    end: int
    first: int
    last: int
    name: str
    kind: str
    op: str
    module: str
    source: str
    dtype: str
    sizes: tuple[int, ...]
    nbytes: int


@dataclass
class Arena:
    """One memory of a method: its size, the bytes wanted at every moment, and its tenants."""

    memory_id: int
    size: int
    load: list[int]
    tenants: list[Tenant] = field(default_factory=list)

    @property
    def largest_live_set(self) -> int:
        """Return the most bytes that are wanted at once: no plan can do with less."""
        return max(self.load, default=0)

    @property
    def fullest(self) -> int:
        """Return the first moment at which the most bytes are wanted."""
        return self.load.index(self.largest_live_set) if self.load else 0

    @property
    def gap(self) -> float:
        """Return by what fraction the size exceeds the largest live set."""
        return self.size / self.largest_live_set - 1.0 if self.largest_live_set else 0.0

    def at(self, moment: int) -> list[tuple[int, Tenant]]:
        """Return the tensors that are wanted at `moment` with their bytes, the largest first."""
        sizes: dict[int, int] = {}
        tenants: dict[int, Tenant] = {}
        for tenant in self.tenants:
            if tenant.first <= moment <= tenant.last:
                sizes[tenant.value] = sizes.get(tenant.value, 0) + tenant.end - tenant.start
                tenants.setdefault(tenant.value, tenant)
        order = sorted(tenants.values(), key=lambda t: (-sizes[t.value], t.start))
        return [(sizes[tenant.value], tenant) for tenant in order]


@dataclass
class MethodMemory:
    """The planned memory of one method."""

    method: str
    instructions: list[str]
    arenas: list[Arena]


def memory_of(pte: PteFile, alignment: int = 16) -> list[MethodMemory]:
    """Return the planned memory of every method that has instructions.

    Ends of tensors count as rounded up to `alignment` bytes.
    """
    origins = Origins.of(pte.named_data)
    return [
        _Analysis(plan, origins, alignment).result()
        for plan in pte.program.execution_plan
        if any(chain.instructions for chain in plan.chains)
    ]


@dataclass(frozen=True)
class _Span:
    memory_id: int
    start: int
    end: int


class _Pieces:
    """The arenas cut at every begin and end of a tensor; sets of pieces are bits of an integer."""

    def __init__(self, spans: Iterable[_Span]) -> None:
        cuts: dict[int, set[int]] = {}
        for span in spans:
            cuts.setdefault(span.memory_id, set()).update((span.start, span.end))
        self.edges = {memory_id: sorted(cuts[memory_id]) for memory_id in sorted(cuts)}
        self.base: dict[int, int] = {}
        self.places: list[_Span] = []
        for memory_id, edges in self.edges.items():
            self.base[memory_id] = len(self.places)
            for start, end in pairwise(edges):
                self.places.append(_Span(memory_id, start, end))

    def mask(self, span: _Span) -> int:
        edges, base = self.edges[span.memory_id], self.base[span.memory_id]
        first = base + bisect_left(edges, span.start)
        return (1 << base + bisect_left(edges, span.end)) - (1 << first)


class _Analysis:
    def __init__(self, plan: ExecutionPlan, origins: Origins, alignment: int) -> None:
        self.plan, self.origins = plan, origins
        self.effects = effects(plan)
        self.moments = len(self.effects) + 2
        self.spans = _spans(plan, alignment)
        self.pieces = _Pieces(self.spans.values())
        self.masks = {value: self.pieces.mask(span) for value, span in self.spans.items()}
        for effect in self.effects:
            if effect.alias is not None:
                value, source = effect.alias
                self.masks[value] = self.masks.get(value, 0) | self.masks.get(source, 0)
        self.state = self._state()
        self.occupied = self._occupied()

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

    def _occupied(self) -> list[int]:
        """Return the wanted pieces of every moment."""
        given = self._bits(self.plan.inputs) | self._bits(self.state)
        kept = self._bits(self.plan.outputs) | self._bits(self.state)
        rows = [
            (self._bits(e.reads), self._bits(v for v in e.writes if v in self.spans), e)
            for e in self.effects
        ]
        touched = [w | self._bits(e.updates) for _, w, e in rows]
        after = [_successors(i, effect) for i, effect in enumerate(self.effects)]
        live = self._live(rows, after, kept)
        reached = self._reached(touched, after, given)
        state = self._bits(self.state)
        moments = [given | state]
        for i, wrote in enumerate(touched):
            out = 0
            for successor in after[i]:
                out |= live[successor]
            moments.append((live[i] & reached[i]) | (out & (reached[i] | wrote)) | wrote | state)
        moments.append((kept & reached[-1]) | state)
        return moments

    def _live(
        self,
        rows: Sequence[tuple[int, int, Effect]],
        after: Sequence[tuple[int, ...]],
        kept: int,
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

    def _reached(
        self, touched: Sequence[int], after: Sequence[tuple[int, ...]], given: int
    ) -> list[int]:
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

    def result(self) -> MethodMemory:
        """Return the arenas."""
        sizes = self.plan.non_const_buffer_sizes
        arenas = {
            memory_id: Arena(memory_id, sizes[memory_id], [0] * self.moments)
            for memory_id in range(1, len(sizes))
        }
        steps = {memory_id: [0] * (self.moments + 1) for memory_id in arenas}
        names = [effect.op for effect in self.effects]
        found: dict[tuple[int, int, int, int], list[_Span]] = {}
        for number, runs in enumerate(self._runs()):
            place = self.pieces.places[number]
            for first, last in runs:
                if place.memory_id in steps:
                    steps[place.memory_id][first] += place.end - place.start
                    steps[place.memory_id][last + 1] -= place.end - place.start
                for stay in self._stays(number, first, last):
                    found.setdefault((place.memory_id, *stay), []).append(place)
        for memory_id, arena in arenas.items():
            now = 0
            for moment in range(self.moments):
                now += steps[memory_id][moment]
                arena.load[moment] = now
        for (memory_id, value, first, last), places in found.items():
            if memory_id in arenas:
                for start, end in _joined(places):
                    tenant = self._tenant(value, _Span(memory_id, start, end), first, last)
                    arenas[memory_id].tenants.append(tenant)
        for arena in arenas.values():
            arena.tenants.sort(key=lambda t: (t.first, t.start))
        return MethodMemory(self.plan.name or "", names, list(arenas.values()))

    def _runs(self) -> list[list[tuple[int, int]]]:
        """Return the spells of moments at which each piece is wanted."""
        runs: list[list[tuple[int, int]]] = [[] for _ in self.pieces.places]
        opened = [0] * len(runs)
        before = 0
        for moment, bits in enumerate([*self.occupied, 0]):
            for number in _ones(bits ^ before):
                if before >> number & 1:
                    runs[number].append((opened[number], moment - 1))
                else:
                    opened[number] = moment
            before = bits
        self._index_writers()
        return runs

    def _index_writers(self) -> None:
        """Note for every piece who writes it, in the order of the instructions."""
        self.writers: list[list[tuple[int, int]]] = [[] for _ in self.pieces.places]
        start = [*self.state, *self.plan.inputs]
        events = [(0, value) for value in start]
        for i, effect in enumerate(self.effects):
            events += [(i + 1, value) for value in (*effect.writes, *effect.updates)]
        for moment, value in events:
            if value in self.spans:
                for number in _ones(self.pieces.mask(self.spans[value])):
                    self.writers[number].append((moment, value))

    def _stays(self, number: int, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Cut one spell of a piece where another tensor takes it over."""
        owner, begin = -1, first
        for moment, value in self.writers[number]:
            if moment > last:
                break
            if moment <= first:
                owner = value
            elif value != owner:
                if owner >= 0:
                    yield owner, begin, moment - 1
                    begin = moment
                owner = value
        if owner >= 0:
            yield owner, begin, last

    def _tenant(self, value: int, span: _Span, first: int, last: int) -> Tenant:
        tensor = self.plan.values[value].val
        assert isinstance(tensor, Tensor)
        extra = tensor.extra_tensor_info
        kind = "intermediate"
        for kind_, values in (
            ("state", self.state),
            ("input", self.plan.inputs),
            ("output", self.plan.outputs),
        ):
            if value in values:
                kind = kind_
                break
        name = f"%{value}"
        if kind == "input":
            name = f"in{self.plan.inputs.index(value)}"
        elif extra is not None and extra.fully_qualified_name:
            name = extra.fully_qualified_name
        writer = self._writer(value, first)
        origin = self.origins.get(self.plan.name or "", writer) if writer >= 0 else {}
        return Tenant(
            value=value,
            memory_id=span.memory_id,
            start=span.start,
            end=span.end,
            first=first,
            last=last,
            name=name,
            kind=kind,
            op=self.effects[writer].op if writer >= 0 else kind,
            module=origin.get("module", ""),
            source=origin.get("source", ""),
            dtype=dtype_name(tensor.scalar_type),
            sizes=tuple(tensor.sizes),
            nbytes=tensor_nbytes(tensor),
        )

    def _writer(self, value: int, moment: int) -> int:
        """Return the last instruction up to `moment` that writes `value`, -1 for none."""
        for i in range(min(moment, len(self.effects)) - 1, -1, -1):
            if value in self.effects[i].writes or value in self.effects[i].updates:
                return i
        return -1


def _spans(plan: ExecutionPlan, alignment: int) -> dict[int, _Span]:
    found: dict[int, tuple[int, int, int]] = {}
    for value, entry in enumerate(plan.values):
        tensor = entry.val
        if isinstance(tensor, Tensor) and tensor.allocation_info is not None:
            info = tensor.allocation_info
            start = info.memory_offset_low + (info.memory_offset_high << 32)
            found[value] = (info.memory_id, start, start + tensor_nbytes(tensor))
    starts = {(memory_id, start) for memory_id, start, _ in found.values()}
    spans = {}
    for value, (memory_id, start, end) in found.items():
        rounded = -(-end // alignment) * alignment
        if any((memory_id, at) in starts for at in range(end, rounded)):
            rounded = end
        spans[value] = _Span(memory_id, start, max(rounded, start))
    return spans


def _successors(i: int, effect: Effect) -> tuple[int, ...]:
    if effect.jump is None:
        return (i + 1,)
    return (effect.jump,) if effect.always else (i + 1, effect.jump)


def _joined(places: Sequence[_Span]) -> Iterator[tuple[int, int]]:
    """Join neighbouring pieces."""
    start = end = -1
    for place in sorted(places, key=lambda p: p.start):
        if place.start == end:
            end = place.end
            continue
        if end >= 0:
            yield start, end
        start, end = place.start, place.end
    if end >= 0:
        yield start, end


def _ones(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
