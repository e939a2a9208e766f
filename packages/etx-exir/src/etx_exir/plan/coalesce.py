# SPDX-License-Identifier: BSD-3-Clause
"""Let a step's result take over the memory of an argument, and drop copies between the two.

Two storages may become one when they are never live at the same step, except at steps that
read one and write the other element by element, and after a copy that made them equal.
"""

from __future__ import annotations

from etx_schema import KernelCall
from etx_schema.bits import set_bits

from etx_exir.plan.linear_ir import Kind, Listing, Place, Step, Storage
from etx_exir.plan.liveness import Liveness

OVERWRITING = {"aten::index_put.out": "aten::index_put_"}
"""Operators that have a kernel apart for a result that lies on their first argument."""


def coalesce(listing: Listing, live: Liveness) -> None:
    """Merge storages in `listing` and keep `live` up to date."""
    coalescer = _Coalescer(listing, live)
    for step in listing.steps:
        if step.copies is not None:
            coalescer.copy(step)
    for step in listing.steps:
        for source, result in step.sharable:
            if coalescer.share(step, source, result):
                break
    for step in listing.steps:
        if step.copies is not None and not step.dead:
            coalescer.copy(step)


class _Coalescer:
    def __init__(self, listing: Listing, live: Liveness) -> None:
        self.listing = listing
        self.live = live

    def share(self, step: Step, source: int, result: int) -> bool:
        """Give `result` the memory of `source`."""
        taken, given = self.listing.places[source], self.listing.places[result]
        scattered = step.op in OVERWRITING
        if scattered and source != _arguments(step)[0]:
            return False
        if self._others_overlap(step, source, scattered) or not self._merge(taken, given):
            return False
        if scattered:
            self._in_place(step, source)
        return True

    def _others_overlap(self, step: Step, source: int, scattered: bool) -> bool:
        storage, start = self.listing.places[source].root()
        end = start + self.listing.places[source].nbytes
        if scattered and step.reads.count(source) > 1:
            return True
        for value in step.reads:
            place = self.listing.places.get(value)
            if place is None or value == source:
                continue
            other, at = place.root()
            if other is not storage or at >= end or at + place.nbytes <= start:
                continue
            if scattered or (at, at + place.nbytes) != (start, end):
                return True
        return False

    def copy(self, step: Step) -> None:
        """Give the copied value the memory of the copy's destination."""
        assert step.copies is not None
        source, target = step.copies
        places = self.listing.places
        if self._same(places[source], places[target]) or self._merge(
            places[target], places[source]
        ):
            step.dead = True

    def _same(self, one: Place, other: Place) -> bool:
        a, b = one.root(), other.root()
        return a[0] is b[0] and a[1] == b[1] and one.nbytes == other.nbytes

    def _merge(self, kept: Place, gone: Place) -> bool:
        into, at = kept.root()
        storage, inside = gone.root()
        if into is storage:
            return at == inside
        if into.kind is not Kind.PLANNED or storage.kind is not Kind.PLANNED:
            return False
        if storage.persistent:
            return False
        settled = into.pinned or into.persistent
        if storage.pinned and settled and storage.memory_id != into.memory_id:
            return False
        if self._is_input(storage) or inside != 0 or at + storage.nbytes > into.nbytes:
            return False
        if not self._compatible(into, at, storage):
            return False
        if storage.pinned and not into.pinned:
            into.pinned, into.memory_id = True, storage.memory_id
        storage.merge_into(into, at)
        self.live.merged(into, storage)
        return True

    def _is_input(self, storage: Storage) -> bool:
        return bool(self.live.mask(storage) & 1)

    def _compatible(self, into: Storage, at: int, storage: Storage) -> bool:
        both = self.live.mask(into) & self.live.mask(storage)
        if both.bit_count() > 64:
            return False
        equal_since = -1
        for moment in set_bits(both):
            step = self._step(moment)
            if step is not None and self._shares(step, into, at, storage):
                if step.copies is not None:
                    equal_since = moment
                elif self.live.mask(into) >> (moment + 1) & 1:
                    return False
                continue
            if equal_since < 0 or not self._untouched(equal_since, moment, into, storage):
                return False
        return True

    def _step(self, moment: int) -> Step | None:
        steps = self.listing.steps
        return steps[moment - 1] if 0 < moment <= len(steps) else None

    def _shares(self, step: Step, into: Storage, at: int, storage: Storage) -> bool:
        def aligned(kept: int, gone: int) -> bool:
            one, other = self.listing.places[kept].root(), self.listing.places[gone].root()
            return one[0] is into and other[0] is storage and one[1] == at + other[1]

        if step.copies is not None:
            pairs: tuple[tuple[int, int], ...] = (step.copies[::-1],)
        else:
            pairs = step.sharable
        return any(aligned(kept, gone) for kept, gone in pairs)

    def _untouched(self, since: int, moment: int, *storages: Storage) -> bool:
        for at in range(since + 1, moment + 1):
            step = self._step(at)
            if step is None or step.dead:
                continue
            if step.target is not None:
                return False
            for value in (*step.writes, *step.updates):
                place = self.listing.places.get(value)
                if place is not None and place.root()[0] in storages:
                    return False
        return True

    def _in_place(self, step: Step, target: int) -> None:
        call = step.instruction.instr_args
        assert isinstance(call, KernelCall)
        call.args = [*_arguments(step)[:-2], target]
        step.op = OVERWRITING[step.op]
        call.op_index = self.listing.operator(step.op, "")
        step.reads = (*step.reads, target)
        step.writes, step.updates = (), (target,)


def _arguments(step: Step) -> list[int]:
    call = step.instruction.instr_args
    assert isinstance(call, KernelCall)
    assert call.args is not None
    return call.args
