# SPDX-License-Identifier: BSD-3-Clause
"""Spread tensors over the banks of a memory map.

The fastest bank keeps the tensors that are read and written most for the time that they take
memory; what does not fit goes to the next bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from etx_exir.errors import PlanError
from etx_exir.plan.algorithms import Block, peak, place
from etx_exir.plan.banks import Bank, Pin, TargetMemoryMap
from etx_exir.plan.blocks import assign, make_blocks, whole
from etx_exir.plan.explain_overflow import shortage
from etx_exir.plan.linear_ir import Listing, Storage
from etx_exir.plan.liveness import Part, intervals
from etx_exir.plan.options import MemoryPlanningPass
from etx_exir.plan.report import ArenaReport
from etx_exir.plan.tensors import by_storage

LOOP_WEIGHT = 8


@dataclass(eq=False)
class Item:
    """A storage with the moments it is occupied at and how often steps touch it."""

    storage: Storage
    parts: list[Part]
    mask: int
    uses: int

    @property
    def score(self) -> float:
        """Return the accesses a moment: what a fast bank gains by holding this."""
        return self.uses / max(self.mask.bit_count(), 1)


def pin(listing: Listing, memory_map: TargetMemoryMap) -> frozenset[Pin]:
    """Set the arenas of pinned storages; return the pins that matched."""
    used = set()
    for storage, tensors in by_storage(listing).items():
        if storage.offset >= 0:
            continue
        chosen: dict[str, str] = {}
        for tensor in tensors:
            match = next((p for p in memory_map.pins if p.matches(tensor)), None)
            if match is not None:
                used.add(match)
                chosen.setdefault(match.bank, tensor.name)
        if len(chosen) > 1:
            what = " and ".join(f"{name!r} to {bank!r}" for bank, name in chosen.items())
            raise PlanError(
                f"method {listing.name!r}: pins send {what}, but the two share their memory;"
                " pin both to one bank"
            )
        for bank in chosen:
            storage.pinned, storage.memory_id = True, memory_map.bank(bank).mem_id
    return frozenset(used)


def spread(
    listing: Listing,
    pairs: Sequence[tuple[Storage, list[Part]]],
    memory_map: TargetMemoryMap,
    options: MemoryPlanningPass,
) -> dict[int, ArenaReport]:
    """Choose a bank and an offset for every storage of `pairs` that has no place yet."""
    uses = _uses(listing)
    items = [
        Item(storage, parts, _mask(parts), uses.get(storage, 0))
        for storage, parts in pairs
        if storage.offset < 0
    ]
    for full in (False, True):
        for item in items:
            item.storage.offset = -1
        reports, left = _fill(listing, items, memory_map, options, full)
        if not left:
            return reports
    last = memory_map.banks[-1]
    asked = [i for i in items if i in left or i.storage.memory_id == last.mem_id]
    raise shortage(listing, last, memory_map, [(i.storage, i.mask) for i in asked])


def _fill(
    listing: Listing,
    items: Sequence[Item],
    memory_map: TargetMemoryMap,
    options: MemoryPlanningPass,
    full: bool,
) -> tuple[dict[int, ArenaReport], list[Item]]:
    """Fill bank after bank; with `full`, use their bytes rather than their speed."""
    rest = [item for item in items if not item.storage.pinned]
    reports = {}
    for bank in memory_map.banks:
        fixed = [i for i in items if i.storage.pinned and i.storage.memory_id == bank.mem_id]
        filling = _Filling(listing, bank, fixed + rest, options, full)
        rest = filling.fill()
        reports[bank.mem_id] = filling.report()
        reports[bank.mem_id].spilled = len(rest)
        reports[bank.mem_id].spilled_bytes = sum(item.storage.nbytes for item in rest)
    return reports, rest


def _mask(parts: Sequence[Part]) -> int:
    mask = 0
    for part in parts:
        mask |= part.mask
    return mask


def _uses(listing: Listing) -> dict[Storage, int]:
    """Count how often each storage is read or written, steps in loops more."""
    weights = [1] * len(listing.steps)
    for i, step in enumerate(listing.steps):
        if step.target is not None and not step.dead and step.target.position <= i:
            for inside in range(step.target.position, i + 1):
                weights[inside] *= LOOP_WEIGHT
    found: dict[Storage, int] = {}
    for step, weight in zip(listing.steps, weights, strict=True):
        if step.dead:
            continue
        for value in {*step.reads, *step.writes, *step.updates}:
            _count(listing, value, weight, found)
    for value in (*listing.inputs, *listing.outputs):
        _count(listing, value, 1, found)
    return found


def _count(listing: Listing, value: int, weight: int, found: dict[Storage, int]) -> None:
    place_ = listing.places.get(value)
    if place_ is not None:
        storage = place_.root()[0]
        found[storage] = found.get(storage, 0) + weight


class _Filling:
    """One bank being filled with `items`; the pinned ones must be in."""

    def __init__(
        self,
        listing: Listing,
        bank: Bank,
        items: list[Item],
        options: MemoryPlanningPass,
        full: bool,
    ) -> None:
        self.listing, self.bank, self.items, self.full = listing, bank, items, full
        alignment = options.alignment if bank.alignment is None else bank.alignment
        self.grain = options.alignment
        self.options = replace(options, alignment=alignment, memory_map=None)
        self.blocks, self.bound = self._blocks(items)
        self.offsets: list[int] = []

    def _blocks(self, items: Sequence[Item]) -> tuple[list[Block], int]:
        alignment = self.options.alignment
        if alignment > self.grain:
            return make_blocks([whole(i.storage.nbytes, i.mask, alignment) for i in items])
        return make_blocks([item.parts for item in items])

    def fill(self) -> list[Item]:
        """Give items their offsets; return those that found no room."""
        self.offsets, needed = assign(self.blocks, self.bound, self.options)
        if self.bank.size is not None and needed > self.bank.size:
            self.offsets = self._best_within(self.bank.size)
        spilled = []
        for item, at in zip(self.items, self.offsets, strict=True):
            if at < 0:
                spilled.append(item)
            else:
                item.storage.offset, item.storage.memory_id = at, self.bank.mem_id
        return spilled

    def _best_within(self, size: int) -> list[int]:
        worth = self._order(lambda item, block: (-item.score, -block.size))
        large = self._order(lambda item, block: (-block.size, -item.score))
        tries = [self._thinned(size, worth), place(self.blocks, worth, size)]
        tries.append(place(self.blocks, large, size))
        valid = [offsets for offsets in tries if self._holds_pinned(offsets)]
        if not valid:
            pinned = [(i.storage, i.mask) for i in self.items if i.storage.pinned]
            raise shortage(self.listing, self.bank, None, pinned)
        return max(valid, key=self._gain)

    def _order(self, rank: object) -> list[int]:
        assert callable(rank)

        def key(i: int) -> tuple[object, ...]:
            item = self.items[i]
            return (not item.storage.pinned, *rank(item, self.blocks[i]), i)

        return sorted(range(len(self.items)), key=key)

    def _thinned(self, size: int, worth: list[int]) -> list[int]:
        """Drop the least worth where too much is alive, place, and fill the gaps that are left."""
        kept = self._drop(size, worth)
        blocks, bound = self._blocks([self.items[i] for i in kept])
        placed, _ = assign(blocks, bound, self.options)
        offsets = [-1] * len(self.items)
        for i, block, at in zip(kept, blocks, placed, strict=True):
            if at + block.size <= size:
                offsets[i] = at
        return place(self.blocks, [i for i in worth if offsets[i] < 0], size, offsets)

    def _drop(self, size: int, worth: list[int]) -> list[int]:
        load = [0] * max((item.mask.bit_length() for item in self.items), default=0)
        for i in range(len(self.items)):
            self._add(load, i, self.blocks[i].size)
        kept = set(worth)
        for i in reversed(worth):
            most = max(load, default=0)
            if most <= size:
                break
            item = self.items[i]
            crowded = any(load[t] > size for a, b in intervals(item.mask) for t in range(a, b + 1))
            if crowded and not item.storage.pinned:
                kept.discard(i)
                self._add(load, i, -self.blocks[i].size)
        return sorted(kept)

    def _add(self, load: list[int], i: int, size: int) -> None:
        for first, last in intervals(self.items[i].mask):
            for moment in range(first, last + 1):
                load[moment] += size

    def _holds_pinned(self, offsets: Sequence[int]) -> bool:
        return all(
            at >= 0 or not item.storage.pinned for item, at in zip(self.items, offsets, strict=True)
        )

    def _gain(self, offsets: Sequence[int]) -> int:
        return sum(
            item.storage.nbytes * (item.mask.bit_count() if self.full else item.uses)
            for item, at in zip(self.items, offsets, strict=True)
            if at >= 0
        )

    def report(self) -> ArenaReport:
        """Say what the bank holds."""
        inside: Iterable[int] = [i for i, at in enumerate(self.offsets) if at >= 0]
        inside_items = [self.items[i] for i in inside]
        blocks, bound = self._blocks(inside_items)
        return ArenaReport(
            peak=peak(blocks, [self.offsets[i] for i in inside]),
            lower_bound=bound,
            total=sum(block.size for block in blocks),
            tensors=len(inside_items),
            bank=self.bank.name,
            capacity=self.bank.size,
        )
