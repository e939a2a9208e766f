# SPDX-License-Identifier: BSD-3-Clause
"""Blocks from sizes and lifetimes, and their offsets."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from etx_exir.plan.algorithms import Block, checked, improve, peak
from etx_exir.plan.liveness import intervals
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


def make_blocks(sized: Sequence[tuple[int, int]], alignment: int) -> tuple[list[Block], int]:
    """Return blocks with their conflicts, and the largest sum of blocks alive at once."""
    blocks = []
    events: list[tuple[int, int, int]] = []
    for index, (nbytes, mask) in enumerate(sized):
        runs = intervals(mask)
        first, last = (runs[0][0], runs[-1][1]) if runs else (0, 0)
        blocks.append(Block(align(nbytes, alignment), first, last))
        events.extend((start, end, index) for start, end in runs)
    events.sort()
    active: list[tuple[int, int]] = []
    pairs: set[tuple[int, int]] = set()
    now = bound = 0
    for start, end, index in events:
        while active and active[0][0] < start:
            now -= blocks[heapq.heappop(active)[1]].size
        for _, other in active:
            if other != index:
                pairs.add((index, other) if index < other else (other, index))
        heapq.heappush(active, (end, index))
        now += blocks[index].size
        bound = max(bound, now)
    for one, other in sorted(pairs):
        blocks[one].conflicts.append(other)
        blocks[other].conflicts.append(one)
    return blocks, bound
