# SPDX-License-Identifier: BSD-3-Clause
"""Place the storages of a method in its arenas."""

from __future__ import annotations

from dataclasses import dataclass, field

from etx_schema import AllocationDetails, Tensor

from etx_exir.plan.assign_banks import pin, spread
from etx_exir.plan.banks import Pin
from etx_exir.plan.blocks import align, assign, make_blocks
from etx_exir.plan.coalesce import coalesce
from etx_exir.plan.linear_ir import Kind, Listing, Storage
from etx_exir.plan.liveness import Liveness, Part
from etx_exir.plan.options import MemoryPlanningPass
from etx_exir.plan.report import ArenaReport, PlanReport
from etx_exir.plan.tensors import by_storage


@dataclass
class Plan:
    """The arenas of a method, what the report says of them, and the pins that matched."""

    arena_sizes: list[int]
    report: PlanReport = field(default_factory=PlanReport)
    pins: frozenset[Pin] = frozenset()


def plan(listing: Listing, options: MemoryPlanningPass) -> Plan:
    """Give every planned storage of `listing` an offset, and write the offsets into its tensors."""
    pins = pin(listing, options.memory_map) if options.memory_map is not None else frozenset()
    live = Liveness(listing)
    before = [(s.memory_id, s.nbytes) for s in live.storages]
    if options.reuse_in_place:
        coalesce(listing, live)
    live = Liveness(listing, options.alignment)
    pairs = [(storage, live.parts(storage)) for storage in live.storages]
    if options.memory_map is not None:
        reports = spread(listing, pairs, options.memory_map, options)
    else:
        reports = {}
    rest = {s.memory_id for s, _ in pairs if s.memory_id not in reports} | {1}
    for memory_id in rest - set(reports):
        arena = [(s, parts) for s, parts in pairs if s.memory_id == memory_id]
        reports[memory_id] = _place_arena(listing, arena, options)
    sizes, rows = [0], []
    for memory_id in range(1, max([*reports, *listing.arena_sizes]) + 1):
        report = reports.get(memory_id, ArenaReport())
        report.memory_id = memory_id
        if options.memory_map is None:
            planned = [align(n, options.alignment) for number, n in before if number == memory_id]
            report.tensors, report.total = len(planned), sum(planned)
        sizes.append(max(report.peak, listing.arena_sizes.get(memory_id, 0)))
        rows.append(report)
    _write_back(listing)
    return Plan(sizes, PlanReport(listing.name, rows), pins)


def _place_arena(
    listing: Listing, arena: list[tuple[Storage, list[Part]]], options: MemoryPlanningPass
) -> ArenaReport:
    free = [(storage, parts) for storage, parts in arena if storage.offset < 0]
    fixed = max((s.offset + s.nbytes for s, _ in arena if s.offset >= 0), default=0)
    base = align(fixed, options.alignment)
    blocks, bound = make_blocks([parts for _, parts in free])
    if options.memory_planning_algo is not None:
        tensors = by_storage(listing)
        for block, (storage, _) in zip(blocks, free, strict=True):
            block.name = tensors[storage][0].name
    best, peak = assign(blocks, bound, options)
    for (storage, _), offset in zip(free, best, strict=True):
        storage.offset = base + offset
    return ArenaReport(peak=base + peak, lower_bound=base + bound)


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
