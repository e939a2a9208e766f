# SPDX-License-Identifier: BSD-3-Clause
"""What a memory plan achieves."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ArenaReport:
    """One arena: bytes it takes, bytes alive at the fullest moment, bytes of all its tensors."""

    peak: int = 0
    lower_bound: int = 0
    total: int = 0
    tensors: int = 0

    @property
    def gap(self) -> float:
        """Return by what fraction the peak exceeds the lower bound."""
        return self.peak / self.lower_bound - 1.0 if self.lower_bound else 0.0


@dataclass
class PlanReport:
    """The arenas of one method."""

    method: str = ""
    arenas: list[ArenaReport] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"method {self.method!r}"]
        for number, arena in enumerate(self.arenas, 1):
            lines.append(
                f"  arena {number}: {arena.peak} bytes for {arena.tensors} tensors of"
                f" {arena.total} bytes; largest live set {arena.lower_bound} bytes"
                f" (+{100 * arena.gap:.1f} %)"
            )
        return "\n".join(lines)
