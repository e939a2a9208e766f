# SPDX-License-Identifier: BSD-3-Clause
"""Offsets for blocks such that no two in conflict overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from etx_exir.errors import ConfigError, PlanError


@dataclass
class Block:
    """A piece of memory to place.

    `size` is in bytes and a multiple of the alignment, `first` and `last` are steps (0 is
    before the first instruction, ``i + 1`` is instruction ``i``), `name` is that of its largest
    tensor. `conflicts` holds the indices of the blocks that are live at the same step. Where
    only parts of two blocks are, these may overlap elsewhere: `apart` holds for each conflict the
    open intervals in which the other's offset less this one's must not lie.
    """

    size: int
    first: int
    last: int
    conflicts: list[int] = field(default_factory=list)
    apart: list[list[tuple[int, int]]] = field(default_factory=list)
    name: str = ""


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
    taken: list[list[tuple[int, int]]] = [[] for _ in blocks]
    result = list(offsets) or [-1] * len(blocks)

    def forbid(index: int, at: int) -> None:
        block = blocks[index]
        for other, gaps in zip(block.conflicts, block.apart, strict=True):
            if result[other] < 0:
                taken[other].extend([(at + low, at + high) for low, high in gaps])

    for index, at in enumerate(result):
        if at >= 0:
            forbid(index, at)
    for index in order:
        best, least, end = -1, -1, 0
        spans = taken[index]
        spans.sort()
        for low, high in spans:
            slack = low - end
            if slack >= 0 and (best < 0 or slack < least):
                best, least = end, slack
            if high > end:
                end = high
        at = end if best < 0 else best
        if limit is not None and at + blocks[index].size > limit:
            continue
        result[index] = at
        forbid(index, at)
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
    load = [b.size + sum(blocks[other].size for other in b.conflicts) for b in blocks]

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
