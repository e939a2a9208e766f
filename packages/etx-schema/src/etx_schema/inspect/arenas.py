# SPDX-License-Identifier: BSD-3-Clause
"""The planned memory of a method: which tensors lie at which bytes of each arena, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Names = Mapping[tuple[str, int], tuple[str, "int | None"]]
"""Names and capacities of arenas by method and memory id."""


@dataclass(frozen=True)
class Allocation:
    """A planned tensor at bytes `start` to `end` of an arena, live from step `first` to `last`.

    Step 0 is before the first instruction, ``i + 1`` is instruction ``i``, the last step is
    after the last instruction. `kind` is ``input``, ``output``, ``state`` or ``intermediate``.
    """

    value: int
    memory_id: int
    start: int
    end: int
    first: int
    last: int
    name: str
    kind: str
    op: str
    module: str
    source: str
    dtype: str
    sizes: tuple[int, ...]
    nbytes: int


@dataclass
class Arena:
    """One memory of a method: its size, the bytes live at every step, its allocations."""

    memory_id: int
    size: int
    load: list[int]
    allocations: list[Allocation] = field(default_factory=list)

    @property
    def largest_live_set(self) -> int:
        """Return the most bytes that are live at once: no plan can do with less."""
        return max(self.load, default=0)

    @property
    def fullest_step(self) -> int:
        """Return the first step at which the most bytes are live."""
        return self.load.index(self.largest_live_set) if self.load else 0

    @property
    def gap(self) -> float:
        """Return by what fraction the size exceeds the largest live set."""
        return self.size / self.largest_live_set - 1.0 if self.largest_live_set else 0.0

    def at(self, step: int) -> list[tuple[int, Allocation]]:
        """Return the tensors that are live at `step` with their bytes, the largest first."""
        sizes: dict[int, int] = {}
        found: dict[int, Allocation] = {}
        for each in self.allocations:
            if each.first <= step <= each.last:
                sizes[each.value] = sizes.get(each.value, 0) + each.end - each.start
                found.setdefault(each.value, each)
        order = sorted(found.values(), key=lambda each: (-sizes[each.value], each.start))
        return [(sizes[each.value], each) for each in order]


@dataclass
class MethodMemory:
    """The planned memory of one method."""

    method: str
    instructions: list[str]
    arenas: list[Arena]
