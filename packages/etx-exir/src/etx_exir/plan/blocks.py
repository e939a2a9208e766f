# SPDX-License-Identifier: BSD-3-Clause
"""Blocks from sizes and lifetimes, and their offsets."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from etx_exir.plan.algorithms import Block, checked, improve, peak
from etx_exir.plan.liveness import Part, intervals
from etx_exir.plan.options import MemoryPlanningPass


def align(size: int, alignment: int) -> int:
    """Return the next multiple of `alignment`."""
    return -(-size // alignment) * alignment


def assign(
    blocks: Sequence[Block], bound: int, options: MemoryPlanningPass
) -> tuple[list[int], int]:
    """Return the offsets of the best algorithm and its bytes; stop at one that needs `bound`."""
    best: list[int] = []
    least = -1
    custom = options.memory_planning_algo is not None
    for algorithm in options.algorithms():
        offsets = checked(algorithm, blocks, options.alignment) if custom else algorithm(blocks)
        needed = peak(blocks, offsets)
        if least < 0 or needed < least:
            best, least = offsets, needed
        if least <= bound:
            return best, least
    if not custom:
        best = improve(blocks, best, bound)
    return best, peak(blocks, best)


def whole(nbytes: int, mask: int, alignment: int) -> list[Part]:
    """Return the one part of a storage that is live as a whole."""
    return [Part(0, align(nbytes, alignment), mask)]


def make_blocks(storages: Sequence[Sequence[Part]]) -> tuple[list[Block], int]:
    """Return blocks with their conflicts, and the largest sum of parts alive at once."""
    blocks: list[Block] = []
    parts: list[tuple[int, Part]] = []
    events: list[tuple[int, int, int]] = []
    for index, each in enumerate(storages):
        first, last = None, 0
        for part in each:
            runs = intervals(part.mask) if part.end > part.start else []
            events.extend((start, end, len(parts)) for start, end in runs)
            parts.append((index, part))
            if runs:
                first = runs[0][0] if first is None else min(first, runs[0][0])
                last = max(last, runs[-1][1])
        blocks.append(Block(max((part.end for part in each), default=0), first or 0, last))
    pairs, bound = _meeting(sorted(events), [part.end - part.start for _, part in parts])
    gaps: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for a, b in sorted(pairs):
        (one, p), (other, q) = parts[a], parts[b]
        if one != other:
            gaps.setdefault((one, other), []).append((p.start - q.end, p.end - q.start))
    for (one, other), found in sorted(gaps.items()):
        merged = _merged(found)
        blocks[one].conflicts.append(other)
        blocks[one].apart.append(merged)
        blocks[other].conflicts.append(one)
        blocks[other].apart.append([(-high, -low) for low, high in merged])
    return blocks, bound


def _meeting(
    events: Sequence[tuple[int, int, int]], sizes: Sequence[int]
) -> tuple[set[tuple[int, int]], int]:
    """Return the pairs of parts that are alive at one moment, and the most bytes at once."""
    active: list[tuple[int, int]] = []
    pairs: set[tuple[int, int]] = set()
    now = bound = 0
    for start, end, part in events:
        while active and active[0][0] < start:
            now -= sizes[heapq.heappop(active)[1]]
        for _, other in active:
            if other != part:
                pairs.add((part, other) if part < other else (other, part))
        heapq.heappush(active, (end, part))
        now += sizes[part]
        bound = max(bound, now)
    return pairs, bound


def _merged(intervals_: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if len(intervals_) == 1:
        return intervals_
    found: list[tuple[int, int]] = []
    for low, high in sorted(intervals_):
        if found and low < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found
