# SPDX-License-Identifier: BSD-3-Clause
"""When each storage holds something that is still wanted.

live_in(i) = reads(i) ∪ (∪ live_in(successors of i) − overwritten(i)), to the fixpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from etx_exir.plan.listing import Kind, Listing, Storage


class Liveness:
    """Occupied moments of every planned storage, as bits of an integer.

    Bit 0 is the moment before the first step (inputs and state are there), bit ``i + 1`` is step
    ``i``, the last bit is the moment after the last step.
    """

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.storages = listing.storages()
        self.index = {id(storage): i for i, storage in enumerate(self.storages)}
        self.moments = len(listing.steps) + 2
        self.everything = (1 << self.moments) - 1
        self.masks = self._masks()

    def mask(self, storage: Storage) -> int:
        """Return the moments at which `storage` is occupied."""
        return self.masks[self.index[id(storage)]]

    def merged(self, kept: Storage, gone: Storage) -> None:
        """Record that `gone` now lies in `kept`."""
        self.masks[self.index[id(kept)]] |= self.masks[self.index[id(gone)]]
        self.masks[self.index[id(gone)]] = 0

    def _bits(self, values: tuple[int, ...]) -> int:
        bits = 0
        for value in values:
            place = self.listing.places.get(value)
            if place is not None:
                bits |= 1 << self.index.get(id(place.root()[0]), len(self.storages))
        return bits & ((1 << len(self.storages)) - 1)

    def _overwritten(self, values: tuple[int, ...]) -> int:
        bits = 0
        for value in values:
            place = self.listing.places.get(value)
            if place is not None:
                storage, _ = place.root()
                if storage.kind is Kind.PLANNED and place.nbytes == storage.nbytes:
                    bits |= 1 << self.index[id(storage)]
        return bits

    def _masks(self) -> list[int]:
        listing = self.listing
        count = len(listing.steps)
        rows = []
        for step in listing.steps:
            if step.dead:
                rows.append((0, 0, 0))
                continue
            written = self._bits(step.writes) | self._bits(step.updates)
            rows.append((self._bits(step.reads), written, self._overwritten(step.writes)))
        live = [0] * (count + 1)
        live[count] = self._bits(tuple(listing.outputs)) | self._bits(tuple(listing.state))
        touched = [0] * count
        loops = self._has_loops()
        changed = True
        while changed:
            changed = False
            for i in range(count - 1, -1, -1):
                out = 0
                for successor in listing.steps[i].successors(i):
                    out |= live[successor]
                reads, written, overwritten = rows[i]
                now = reads | (out & ~overwritten)
                touched[i] = now | out | written
                if now != live[i]:
                    live[i] = now
                    changed = loops
        start = live[0] | self._bits(tuple(listing.inputs)) | self._bits(tuple(listing.state))
        return self._transpose([start, *touched, live[count]])

    def _has_loops(self) -> bool:
        return any(
            step.target is not None and not step.dead and step.target.position <= i
            for i, step in enumerate(self.listing.steps)
        )

    def _transpose(self, moments: list[int]) -> list[int]:
        masks = [0] * len(self.storages)
        opened = [0] * len(self.storages)
        before = 0
        for moment, bits in enumerate([*moments, 0]):
            for storage in _ones(bits ^ before):
                if before >> storage & 1:
                    masks[storage] |= (1 << moment) - (1 << opened[storage])
                else:
                    opened[storage] = moment
            before = bits
        return masks


def _ones(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def intervals(mask: int) -> list[tuple[int, int]]:
    """Return the runs of ones in `mask` as (first, last) pairs."""
    runs = []
    shift = 0
    while mask:
        zeros = (mask & -mask).bit_length() - 1
        mask >>= zeros
        shift += zeros
        ones = (~mask & (mask + 1)).bit_length() - 1
        runs.append((shift, shift + ones - 1))
        mask >>= ones
        shift += ones
    return runs
