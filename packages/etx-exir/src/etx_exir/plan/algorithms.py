# SPDX-License-Identifier: BSD-3-Clause
"""Offsets for blocks such that no two in conflict overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from etx_exir.errors import ConfigError, PlanError
from etx_exir.plan.conflicts import Conflicts, Numbers


@dataclass
class Block:
    """A piece of memory to place.

    `size` is in bytes and a multiple of the alignment, `first` and `last` are steps (0 is
    before the first instruction, ``i + 1`` is instruction ``i``), `name` is that of its largest
    tensor. `index` is its place among the blocks of `meeting`, which knows those in conflict.
    """

    size: int
    first: int
    last: int
    index: int
    meeting: Conflicts = field(repr=False)
    name: str = ""

    @property
    def conflicts(self) -> list[int]:
        """The indices of the blocks that are live at the same step, in order."""
        return [int(other) for other in self.met]

    @property
    def met(self) -> Numbers:
        """The same as an array, int64."""
        return np.unique(self.meeting.of(self.index).others)

    @property
    def apart(self) -> list[list[tuple[int, int]]]:
        """For each conflict the open intervals in which its offset less this one's must not lie.

        Where only parts of two blocks meet, these may overlap elsewhere.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        gaps = self.meeting.of(self.index)
        for other, low, high in zip(*(column.tolist() for column in gaps), strict=True):
            found.setdefault(other, []).append((low, high))
        return list(found.values())


WORK = 100_000

Algorithm = Callable[[Sequence[Block]], list[int]]
"""From blocks to their offsets in bytes, such that no two in conflict overlap."""


def place(
    blocks: Sequence[Block],
    order: Iterable[int],
    limit: int | None = None,
    offsets: Sequence[int] = (),
) -> list[int]:
    """Place blocks in `order`, each in the tightest gap left by its conflicts.

    `offsets` holds what is placed already; -1 stays where a block would end above `limit`.
    """
    result = np.array(offsets or [-1] * len(blocks), np.int64)
    for index in order:
        block = blocks[index]
        gaps = block.meeting.of(block.index)
        at = result[gaps.others]
        is_placed = at >= 0
        best = _tightest((at - gaps.highs)[is_placed], (at - gaps.lows)[is_placed])
        if limit is None or best + block.size <= limit:
            result[index] = best
    return [int(at) for at in result]


def _tightest(lows: Numbers, highs: Numbers) -> int:
    """Return the offset outside of these open intervals that has the least room above it."""
    if not lows.size:
        return 0
    order = np.argsort(lows, kind="stable")
    ends = np.maximum.accumulate(np.concatenate([[0], highs[order]]))
    room = lows[order] - ends[:-1]
    fits = np.flatnonzero(room >= 0)
    return int(ends[fits[np.argmin(room[fits])]] if fits.size else ends[-1])


def stacked(blocks: Sequence[Block]) -> list[int]:
    """Return what `greedy` does where all blocks are in conflict: large ones first."""
    result, end = [0] * len(blocks), 0
    for index in sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i)):
        result[index] = end
        end += blocks[index].size
    return result


def greedy(blocks: Sequence[Block]) -> list[int]:
    """Place large blocks first, each where it fits best."""
    return place(blocks, sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i)))


def by_lifetime(blocks: Sequence[Block]) -> list[int]:
    """Place long-lived blocks first."""

    def rank(i: int) -> tuple[int, int, int]:
        return (blocks[i].first - blocks[i].last, -blocks[i].size, i)

    return place(blocks, sorted(range(len(blocks)), key=rank))


def by_time(blocks: Sequence[Block]) -> list[int]:
    """Place blocks as they come to life, large ones first."""

    def rank(i: int) -> tuple[int, int, int]:
        return (blocks[i].first, -blocks[i].size, i)

    return place(blocks, sorted(range(len(blocks)), key=rank))


def by_area(blocks: Sequence[Block]) -> list[int]:
    """Place blocks of the largest size times lifetime first."""

    def rank(i: int) -> tuple[int, int]:
        return (-blocks[i].size * (blocks[i].last - blocks[i].first + 1), i)

    return place(blocks, sorted(range(len(blocks)), key=rank))


def by_pressure(blocks: Sequence[Block]) -> list[int]:
    """Place blocks that are alive with the largest others first."""
    sizes = np.array([block.size for block in blocks], np.int64)
    load = [b.size + int(sizes[b.met].sum()) for b in blocks]

    def rank(i: int) -> tuple[int, int, int]:
        return (-load[i], -blocks[i].size, i)

    return place(blocks, sorted(range(len(blocks)), key=rank))


def naive(blocks: Sequence[Block]) -> list[int]:
    """Give every block memory of its own."""
    offsets, end = [], 0
    for block in blocks:
        offsets.append(end)
        end += block.size
    return offsets


ALGORITHMS: tuple[Algorithm, ...] = (greedy, by_area, by_time, by_pressure, by_lifetime)


class MemoryPlanningAlgorithmSuite:
    """An algorithm that runs those of `algo_list` and keeps the result that needs the least."""

    def __init__(self, algo_list: Sequence[Algorithm] = ALGORITHMS) -> None:
        self.algo_list = tuple(algo_list)
        if not self.algo_list:
            raise ConfigError("MemoryPlanningAlgorithmSuite: algo_list is empty")

    def __call__(self, blocks: Sequence[Block]) -> list[int]:
        """Return the best offsets."""
        results = [checked(algorithm, blocks) for algorithm in self.algo_list]
        return min(results, key=lambda offsets: peak(blocks, offsets))


def checked(algorithm: Algorithm, blocks: Sequence[Block], alignment: int = 1) -> list[int]:
    """Return the offsets of `algorithm`, or say what is wrong with them."""
    offsets = algorithm(blocks)
    name = getattr(algorithm, "__name__", type(algorithm).__name__)
    start = f"the memory planning algorithm {name!r}"
    if len(offsets) != len(blocks):
        raise PlanError(f"{start} gave {len(offsets)} offsets for {len(blocks)} blocks")
    for i, (block, at) in enumerate(zip(blocks, offsets, strict=True)):
        what = f"block {i} ({block.name or 'no name'}, {block.size:,} bytes)"
        if not isinstance(at, int) or at < 0 or at % alignment:
            raise PlanError(
                f"{start} put {what} at {at!r}; expected a multiple of {alignment}, at least 0"
            )
        for j, gaps in zip(block.conflicts, block.apart, strict=True):
            other = blocks[j]
            if any(low < offsets[j] - at < high for low, high in gaps):
                raise PlanError(
                    f"{start} put {what} at {at:,}, where it overlaps block {j}"
                    f" ({other.name or 'no name'}, {other.size:,} bytes at {offsets[j]:,}):"
                    f" they are live from step {block.first} to {block.last} and from"
                    f" {other.first} to {other.last}"
                )
    return list(offsets)


def peak(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """Return the bytes that a placement needs."""
    return max((at + block.size for block, at in zip(blocks, offsets, strict=True)), default=0)


def improve(blocks: Sequence[Block], offsets: list[int], bound: int) -> list[int]:
    """Move blocks that stick out of `bound` to the front of the order, and place again."""
    edges = sum(block.met.size for block in blocks)
    rounds = min(24, WORK // (edges + 1))
    best, least = offsets, peak(blocks, offsets)
    order = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i))
    for _ in range(rounds):
        high = {i for i in order if offsets[i] + blocks[i].size > bound}
        if least <= bound or not high:
            break
        order = [i for i in order if i in high] + [i for i in order if i not in high]
        offsets = place(blocks, order)
        if peak(blocks, offsets) < least:
            best, least = offsets, peak(blocks, offsets)
    return best
