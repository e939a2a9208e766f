# SPDX-License-Identifier: BSD-3-Clause
"""Place the storages of a method in its arenas."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from etx_schema import AllocationDetails, Tensor

from etx_exir.plan.algorithms import ALGORITHMS, Algorithm, Block, improve, peak
from etx_exir.plan.coalesce import coalesce
from etx_exir.plan.listing import Kind, Listing, Storage
from etx_exir.plan.liveness import Liveness, intervals
from etx_exir.plan.report import ArenaReport, PlanReport


@dataclass(frozen=True)
class MemoryPlanningPass:
    """How the memory of a method is planned."""

    memory_planning_algo: Algorithm | Sequence[Algorithm] | None = None
    alloc_graph_input: bool = True
    alloc_graph_output: bool = True
    alloc_mutable_buffers: bool = True
    share_mutable_buffers: bool = False
    alignment: int = 16
    reuse_in_place: bool = True

    def algorithms(self) -> tuple[Algorithm, ...]:
        """Return the algorithms to try."""
        chosen = self.memory_planning_algo
        if chosen is None:
            return ALGORITHMS
        return (chosen,) if callable(chosen) else tuple(chosen)


@dataclass
class Plan:
    """The arenas of a method and what the report says of them."""

    arena_sizes: list[int]
    report: PlanReport = field(default_factory=PlanReport)


def plan(listing: Listing, options: MemoryPlanningPass) -> Plan:
    """Give every planned storage of `listing` an offset, and write the offsets into its tensors."""
    live = Liveness(listing)
    before = [(s.memory_id, _align(s.nbytes, options.alignment)) for s in live.storages]
    if options.reuse_in_place:
        coalesce(listing, live)
    pairs = [
        (storage, live.everything if storage.persistent else mask)
        for storage, mask in zip(live.storages, live.masks, strict=True)
        if storage.parent is None
    ]
    sizes = [0]
    reports = []
    last = max([1, *(s.memory_id for s, _ in pairs), *listing.arena_sizes])
    for memory_id in range(1, last + 1):
        arena = [(s, mask) for s, mask in pairs if s.memory_id == memory_id]
        report = _place_arena(arena, options)
        report.tensors = sum(number == memory_id for number, _ in before)
        report.total = sum(size for number, size in before if number == memory_id)
        sizes.append(max(report.peak, listing.arena_sizes.get(memory_id, 0)))
        reports.append(report)
    _write_back(listing)
    return Plan(sizes, PlanReport(listing.name, reports))


def _place_arena(arena: list[tuple[Storage, int]], options: MemoryPlanningPass) -> ArenaReport:
    free = [(storage, mask) for storage, mask in arena if storage.offset < 0]
    fixed = max((s.offset + s.nbytes for s, _ in arena if s.offset >= 0), default=0)
    base = _align(fixed, options.alignment)
    blocks, bound = make_blocks([(s.nbytes, mask) for s, mask in free], options.alignment)
    best = assign(blocks, bound, options)
    for (storage, _), offset in zip(free, best, strict=True):
        storage.offset = base + offset
    return ArenaReport(
        peak=base + peak(blocks, best),
        lower_bound=base + bound,
    )


def assign(blocks: Sequence[Block], bound: int, options: MemoryPlanningPass) -> list[int]:
    """Return the offsets of the best algorithm; stop at one that reaches `bound`."""
    best: list[int] = []
    least = -1
    for algorithm in options.algorithms():
        offsets = algorithm(blocks)
        needed = peak(blocks, offsets)
        if least < 0 or needed < least:
            best, least = offsets, needed
        if least <= bound:
            return best
    return best if options.memory_planning_algo is not None else improve(blocks, best, bound)


def _align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def make_blocks(sized: Sequence[tuple[int, int]], alignment: int) -> tuple[list[Block], int]:
    """Return blocks with their conflicts, and the largest sum of blocks alive at once."""
    blocks = []
    events: list[tuple[int, int, int]] = []
    for index, (nbytes, mask) in enumerate(sized):
        runs = intervals(mask)
        first, last = (runs[0][0], runs[-1][1]) if runs else (0, 0)
        blocks.append(Block(_align(nbytes, alignment), first, last))
        events.extend((start, end, index) for start, end in runs)
    events.sort()
    active: list[tuple[int, int]] = []
    pairs: set[tuple[int, int]] = set()
    now = bound = 0
    for start, end, index in events:
        while active and active[0][0] < start:
            now -= blocks[heapq.heappop(active)[1]].size
        for _, other in active:
            if other != index:
                pairs.add((index, other) if index < other else (other, index))
        heapq.heappush(active, (end, index))
        now += blocks[index].size
        bound = max(bound, now)
    for one, other in sorted(pairs):
        blocks[one].conflicts.append(other)
        blocks[other].conflicts.append(one)
    return blocks, bound


def _write_back(listing: Listing) -> None:
    for value, place in listing.places.items():
        storage, offset = place.root()
        tensor = listing.values[value].val
        assert isinstance(tensor, Tensor)
        if storage.kind is not Kind.PLANNED:
            continue
        at = storage.offset + offset
        tensor.allocation_info = AllocationDetails(
            memory_id=storage.memory_id,
            memory_offset_low=at & 0xFFFFFFFF,
            memory_offset_high=at >> 32,
        )
