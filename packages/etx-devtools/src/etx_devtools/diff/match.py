# SPDX-License-Identifier: BSD-3-Clause
"""Pair the instructions of two methods by where they come from, whatever their places are."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache

from etx_devtools.diff.rows import Row

__all__ = ["moved", "pair"]

Key = Callable[[Row], Hashable]
INTEGER = ("quantized_", "dynamic_", "weight_only_", "depthwise_", "_int4")
LAYERS = {
    "avg_pool": "avg_pool2d",
    "conv": "convolution",
    "max_pool": "max_pool2d",
    "max_pool2d_with_indices": "max_pool2d",
    "interpolate": "upsample_bilinear2d",
}


def _kind(row: Row) -> str:
    return row.operator.partition(" (")[0]


@cache
def _layer(operator: str) -> str:
    """Return what an operator and its integer one have in common: `etx::quantized_conv.out` is a
    convolution."""
    name = operator.partition(" (")[0].partition("::")[2].partition(".")[0]
    for part in INTEGER:
        name = name.replace(part, "")
    return LAYERS.get(name, name) or operator


KEYS: tuple[Key, ...] = (
    lambda row: (row.operator, row.module, row.source, row.arguments),
    lambda row: (row.operator, row.module, row.arguments),
    lambda row: (row.origin or _kind(row), row.module, row.source),
    lambda row: (row.origin or _kind(row), row.module),
    lambda row: (_layer(row.operator), row.module, row.source),
    lambda row: (row.operator, row.source, row.arguments),
    lambda row: (row.operator, row.arguments),
)
"""From all that is known of an instruction to only what it does: each key pairs what is left.

Where a file says no modules, as ExecuTorch's, operators are paired in their order at last.
"""


def pair(before: Sequence[Row], after: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the pairs in the order of `before`; rows with equal keys are paired in their order."""
    partner: dict[int, int] = {}
    left, right = range(len(before)), range(len(after))
    silent = any(not any(row.module for row in side) for side in (before, after))
    for key in (*KEYS, _kind) if silent else KEYS:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for i in left:
            waiting[key(before[i])].append(i)
        for found in waiting.values():
            found.reverse()
        taken = set()
        for j in right:
            queue = waiting.get(key(after[j]))
            if queue:
                partner[queue.pop()] = j
                taken.add(j)
        left = [i for i in left if i not in partner]  # type: ignore[assignment]
        right = [j for j in right if j not in taken]  # type: ignore[assignment]
    return [(before[i], after[j]) for i, j in sorted(partner.items())]


def moved(pairs: Iterable[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    """Return the fewest pairs without which all others are in the same order in both methods."""
    rows = list(pairs)
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for n, (_, new) in enumerate(rows):
        place = bisect_left(tails, new.index)
        before.append(ends[place - 1] if place else -1)
        tails[place : place + 1] = [new.index]
        ends[place : place + 1] = [n]
    kept = set()
    n = ends[-1] if ends else -1
    while n >= 0:
        kept.add(n)
        n = before[n]
    return [row for n, row in enumerate(rows) if n not in kept]
