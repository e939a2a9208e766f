# SPDX-License-Identifier: BSD-3-Clause
"""The bytes of planned tensors, cut into pieces where tensors begin and end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from etx_schema._generated.program import ExecutionPlan, Tensor
from etx_schema.dtypes import tensor_nbytes


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `end` of an arena."""

    memory_id: int
    start: int
    end: int


class Pieces:
    """The arenas cut at every begin and end of a tensor; sets of pieces are bits of an integer."""

    def __init__(self, spans: Iterable[Span]) -> None:
        cuts: dict[int, set[int]] = {}
        for span in spans:
            cuts.setdefault(span.memory_id, set()).update((span.start, span.end))
        self.edges = {memory_id: sorted(cuts[memory_id]) for memory_id in sorted(cuts)}
        self.base: dict[int, int] = {}
        self.places: list[Span] = []
        for memory_id, edges in self.edges.items():
            self.base[memory_id] = len(self.places)
            for start, end in pairwise(edges):
                self.places.append(Span(memory_id, start, end))

    def mask(self, span: Span) -> int:
        """Return the pieces of `span`."""
        edges, base = self.edges[span.memory_id], self.base[span.memory_id]
        first = base + bisect_left(edges, span.start)
        return (1 << base + bisect_left(edges, span.end)) - (1 << first)


def spans_of(plan: ExecutionPlan, alignment: int) -> dict[int, Span]:
    """Return where each planned tensor lies; ends count as rounded up to `alignment`."""
    found: dict[int, tuple[int, int, int]] = {}
    for value, entry in enumerate(plan.values):
        tensor = entry.val
        if isinstance(tensor, Tensor) and tensor.allocation_info is not None:
            info = tensor.allocation_info
            start = info.memory_offset_low + (info.memory_offset_high << 32)
            found[value] = (info.memory_id, start, start + tensor_nbytes(tensor))
    starts = {(memory_id, start) for memory_id, start, _ in found.values()}
    spans = {}
    for value, (memory_id, start, end) in found.items():
        rounded = -(-end // alignment) * alignment
        if any((memory_id, at) in starts for at in range(end, rounded)):
            rounded = end
        spans[value] = Span(memory_id, start, max(rounded, start))
    return spans


def joined(places: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Join neighbouring pieces."""
    start = end = -1
    for place in sorted(places, key=lambda p: p.start):
        if place.start == end:
            end = place.end
            continue
        if end >= 0:
            yield start, end
        start, end = place.start, place.end
    if end >= 0:
        yield start, end
