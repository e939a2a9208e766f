# SPDX-License-Identifier: BSD-3-Clause
"""Which blocks are alive at the same step, and where they must not lie for it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Conflicts", "Gaps", "Numbers", "Piece"]

Numbers = npt.NDArray[np.int64]


class Gaps(NamedTuple):
    """For a block its conflicts in order, one for each pair of parts that meet.

    The offset of a conflict less the block's must not lie in the open interval from `lows` to
    `highs`. All three are int64 of one length.
    """

    others: Numbers
    lows: Numbers
    highs: Numbers


class Piece(NamedTuple):
    """A part of block `owner`, from byte `start` to `end` of it, with its (first, last) steps."""

    owner: int
    start: int
    end: int
    runs: Sequence[tuple[int, int]]


class Conflicts:
    """The conflicts of blocks with these pieces, found when they are first asked for.

    `bound` is the largest sum of pieces alive at once.
    """

    def __init__(self, pieces: Sequence[Piece], count: int) -> None:
        self.count = count
        self.pieces = pieces
        self._events = sorted(
            (first, last, index) for index, piece in enumerate(pieces) for first, last in piece.runs
        )
        self.bound = self._most()

    def _most(self) -> int:
        active: list[tuple[int, int]] = []
        now = bound = 0
        for first, last, index in self._events:
            while active and active[0][0] < first:
                now -= heapq.heappop(active)[1]
            size = self.pieces[index].end - self.pieces[index].start
            heapq.heappush(active, (last, size))
            now += size
            bound = max(bound, now)
        return bound

    def of(self, block: int) -> Gaps:
        """Return the conflicts of `block`."""
        starts, gaps = self._rows
        chosen = slice(starts[block], starts[block + 1])
        return Gaps(gaps.others[chosen], gaps.lows[chosen], gaps.highs[chosen])

    @cached_property
    def _rows(self) -> tuple[list[int], Gaps]:
        """Return all gaps by block, and where those of each block begin."""
        a, b = self._meeting()
        owner, start, end = (
            np.array([piece[column] for piece in self.pieces], np.int64) for column in range(3)
        )
        a, b = (side[owner[a] != owner[b]] for side in (a, b))
        low, high = start[a] - end[b], end[a] - start[b]
        block = np.concatenate([owner[a], owner[b]])
        other = np.concatenate([owner[b], owner[a]])
        order = np.lexsort((other, block))
        starts = np.searchsorted(block[order], np.arange(self.count + 1))
        gaps = Gaps(
            other[order],
            np.concatenate([low, -high])[order],
            np.concatenate([high, -low])[order],
        )
        return starts.tolist(), gaps

    def _meeting(self) -> tuple[Numbers, Numbers]:
        """Return each pair of pieces that are alive at one step once, the lesser in front."""
        active: list[tuple[int, int]] = []
        ones, others = [], []
        for first, last, index in self._events:
            while active and active[0][0] < first:
                heapq.heappop(active)
            ones.append(np.full(len(active), index, np.int64))
            others.append(np.array([other for _, other in active], np.int64))
            heapq.heappush(active, (last, index))
        one, other = (np.concatenate([*side, np.empty(0, np.int64)]) for side in (ones, others))
        pairs = np.minimum(one, other) * len(self.pieces) + np.maximum(one, other)
        if any(len(piece.runs) > 1 for piece in self.pieces):
            pairs = np.unique(pairs)
        return pairs // max(1, len(self.pieces)), pairs % max(1, len(self.pieces))
