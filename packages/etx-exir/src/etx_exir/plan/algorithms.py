# SPDX-License-Identifier: BSD-3-Clause
"""Offsets for blocks such that no two in conflict overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Block:
    """A piece of memory to place: its size, its first and last moment, and its conflicts."""

    size: int
    first: int
    last: int
    conflicts: set[int] = field(default_factory=set)


Algorithm = Callable[[Sequence[Block]], list[int]]


def place(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Place blocks in `order`, each in the tightest gap left by its conflicts."""
    offsets = [-1] * len(blocks)
    for index in order:
        block = blocks[index]
        taken = sorted(
            (offsets[other], offsets[other] + blocks[other].size)
            for other in block.conflicts
            if offsets[other] >= 0 and blocks[other].size
        )
        best, best_gap, end = -1, -1, 0
        for start, stop in taken:
            gap = start - end
            if gap >= block.size and (best < 0 or gap < best_gap):
                best, best_gap = end, gap
            end = max(end, stop)
        offsets[index] = end if best < 0 else best
    return offsets


def by_size(blocks: Sequence[Block]) -> list[int]:
    """Place large blocks first."""
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
    """Place blocks that live through the fullest moments first."""
    load: dict[int, int] = {}
    edges: dict[int, int] = {}
    for block in blocks:
        edges[block.first] = edges.get(block.first, 0) + block.size
        edges[block.last + 1] = edges.get(block.last + 1, 0) - block.size
    now = 0
    moments = sorted(edges)
    for moment in moments:
        now += edges[moment]
        load[moment] = now

    def rank(i: int) -> tuple[int, int, int]:
        block = blocks[i]
        peak = max(load[m] for m in moments if block.first <= m <= block.last)
        return (-peak, -block.size, i)

    return place(blocks, sorted(range(len(blocks)), key=rank))


def no_reuse(blocks: Sequence[Block]) -> list[int]:
    """Give every block memory of its own."""
    offsets, end = [], 0
    for block in blocks:
        offsets.append(end)
        end += block.size
    return offsets


ALGORITHMS: tuple[Algorithm, ...] = (by_size, by_area, by_time, by_pressure, by_lifetime)


def peak(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """Return the bytes that a placement needs."""
    return max((at + block.size for block, at in zip(blocks, offsets, strict=True)), default=0)


def improve(blocks: Sequence[Block], offsets: list[int], bound: int, rounds: int = 24) -> list[int]:
    """Move blocks that stick out of `bound` to the front of the order, and place again."""
    best = offsets
    order = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, i))
    for _ in range(rounds):
        if peak(blocks, best) <= bound:
            break
        high = [i for i in order if offsets[i] + blocks[i].size > bound]
        if not high:
            break
        first = set(high)
        order = high + [i for i in order if i not in first]
        offsets = place(blocks, order)
        if peak(blocks, offsets) < peak(blocks, best):
            best = offsets
    return best
