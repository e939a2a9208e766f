# SPDX-License-Identifier: BSD-3-Clause
"""Blocks from sizes and lifetimes, and their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from etx_exir.plan.algorithms import Block, checked, improve, peak, stacked
from etx_exir.plan.conflicts import Conflicts, Piece
from etx_exir.plan.liveness import Part, intervals
from etx_exir.plan.options import MemoryPlanningPass


def align(size: int, alignment: int) -> int:
    """Return the next multiple of `alignment`."""
    return -(-size // alignment) * alignment


def assign(
    blocks: Sequence[Block], bound: int, options: MemoryPlanningPass
) -> tuple[list[int], int]:
    """Return the offsets of the best algorithm and its bytes; stop at one that needs `bound`.

    Where all blocks are alive at once, as outputs are, none needs to be asked.
    """
    best: list[int] = []
    least = -1
    custom = options.memory_planning_algo is not None
    if not custom and sum(block.size for block in blocks) == bound:
        return stacked(blocks), bound
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
    pieces = [
        Piece(index, part.start, part.end, intervals(part.mask) if part.end > part.start else [])
        for index, each in enumerate(storages)
        for part in each
    ]
    conflicts = Conflicts(pieces, len(storages))
    blocks = [
        Block(max((part.end for part in each), default=0), 0, 0, index, conflicts)
        for index, each in enumerate(storages)
    ]
    for index, group in groupby(pieces, lambda piece: piece.owner):
        runs = [run for piece in group for run in piece.runs]
        blocks[index].first = min((first for first, _ in runs), default=0)
        blocks[index].last = max((last for _, last in runs), default=0)
    return blocks, conflicts.bound
