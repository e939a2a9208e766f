# SPDX-License-Identifier: BSD-3-Clause
"""Live ranges: when each storage holds something that is still read.

live_in(i) = reads(i) ∪ (∪ live_in(successors of i) − overwritten(i)), to the fixpoint.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise

from etx_schema.bits import set_bits

from etx_exir.plan.linear_ir import Kind, Listing, Storage


@dataclass(frozen=True)
class Part:
    """Bytes `start` to `end` of a storage and the moments at which they are occupied."""

    start: int
    end: int
    mask: int


class Liveness:
    """Occupied moments of every planned storage, as bits of an integer.

    Bit 0 is the moment before the first step (inputs and state are there), bit ``i + 1`` is step
    ``i``, the last bit is the moment after the last step. With a `grain` in bytes, storages are
    cut at multiples of it where views begin and end, and each part has moments of its own.
    """

    def __init__(self, listing: Listing, grain: int | None = None) -> None:
        self.listing = listing
        self.storages = listing.storages()
        self.index = {id(storage): i for i, storage in enumerate(self.storages)}
        self.moments = len(listing.steps) + 2
        self.everything = (1 << self.moments) - 1
        self.cuts = [[0, _up(s.nbytes, grain or 1)] for s in self.storages]
        if grain is not None:
            self._cut(grain)
        self.base = [0]
        for cuts in self.cuts:
            self.base.append(self.base[-1] + len(cuts) - 1)
        self.read_bits: dict[int, int] = {}
        self.write_bits: dict[int, int] = {}
        self._number_values()
        self.masks = self._masks()

    def parts(self, storage: Storage) -> list[Part]:
        """Return the parts of `storage`, which cover it."""
        i = self.index[id(storage)]
        masks = self.masks[self.base[i] : self.base[i + 1]]
        if storage.persistent:
            return [Part(self.cuts[i][0], self.cuts[i][-1], self.everything)]
        edges = pairwise(self.cuts[i])
        return [Part(a, b, mask) for (a, b), mask in zip(edges, masks, strict=True)]

    def _cut(self, grain: int) -> None:
        found: list[set[int]] = [set(cuts) for cuts in self.cuts]
        for place in self.listing.places.values():
            storage, at = place.root()
            if storage.kind is Kind.PLANNED and not storage.persistent:
                cuts = found[self.index[id(storage)]]
                cuts.update((at // grain * grain, _up(at + place.nbytes, grain)))
        self.cuts = [sorted(cuts) if len(cuts) > 1 else [0, 0] for cuts in found]

    def _number_values(self) -> None:
        """Give every value the parts that it touches, and those that it covers."""
        for value, place in self.listing.places.items():
            storage, at = place.root()
            if storage.kind is not Kind.PLANNED or not place.nbytes:
                continue
            i = self.index[id(storage)]
            cuts, base, end = self.cuts[i], self.base[i], at + place.nbytes
            first = max(bisect_right(cuts, at) - 1, 0)
            last = max(bisect_left(cuts, end), first + 1)
            self.read_bits[value] = (1 << base + last) - (1 << base + first)
            inner = bisect_left(cuts, at)
            outer = len(cuts) - 1 if end >= storage.nbytes else bisect_right(cuts, end) - 1
            if outer > inner:
                self.write_bits[value] = (1 << base + outer) - (1 << base + inner)

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
            bits |= self.read_bits.get(value, 0)
        return bits

    def _overwritten(self, values: tuple[int, ...]) -> int:
        bits = 0
        for value in values:
            bits |= self.write_bits.get(value, 0)
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
        masks = [0] * self.base[-1]
        opened = [0] * self.base[-1]
        before = 0
        for moment, bits in enumerate([*moments, 0]):
            for part in set_bits(bits ^ before):
                if before >> part & 1:
                    masks[part] |= (1 << moment) - (1 << opened[part])
                else:
                    opened[part] = moment
            before = bits
        return masks


def _up(size: int, grain: int) -> int:
    return -(-size // grain) * grain


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
