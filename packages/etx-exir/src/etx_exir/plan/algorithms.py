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
    conflicts: list[int] = field(default_factory=list)


WORK = 100_000

Algorithm = Callable[[Sequence[Block]], list[int]]


def place(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Place blocks in `order`, each in the tightest gap left by its conflicts."""
    offsets = [-1] * len(blocks)
    taken: list[list[tuple[int, int]]] = [[] for _ in blocks]
    for index in order:
        size = blocks[index].size
        best, best_gap, end = -1, -1, 0
        spans = taken[index]
        spans.sort()
        for start, stop in spans:
            gap = start - end
            if gap >= size and (best < 0 or gap < best_gap):
                best, best_gap = end, gap
            if stop > end:
                end = stop
        at = offsets[index] = end if best < 0 else best
        if size:
            span = (at, at + size)
            for other in blocks[index].conflicts:
                if offsets[other] < 0:
                    taken[other].append(span)
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
    """Place blocks that are alive with the largest others first."""
    load = [b.size + sum(blocks[other].size for other in b.conflicts) for b in blocks]

    def rank(i: int) -> tuple[int, int, int]:
        return (-load[i], -blocks[i].size, i)

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


def improve(blocks: Sequence[Block], offsets: list[int], bound: int) -> list[int]:
    """Move blocks that stick out of `bound` to the front of the order, and place again."""
    edges = sum(len(block.conflicts) for block in blocks)
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
