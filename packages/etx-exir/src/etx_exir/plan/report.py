# SPDX-License-Identifier: BSD-3-Clause
"""What a memory plan achieves."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ArenaReport:
    """One arena: bytes it takes, bytes alive at the fullest step, bytes of all its tensors.

    A bank of a memory map has a name, a capacity in bytes, and tensors that found no room in it.
    """

    peak: int = 0
    lower_bound: int = 0
    total: int = 0
    tensors: int = 0
    memory_id: int = 1
    bank: str = ""
    capacity: int | None = None
    spilled: int = 0
    spilled_bytes: int = 0

    @property
    def gap(self) -> float:
        """Return by what fraction the peak exceeds the lower bound."""
        return self.peak / self.lower_bound - 1.0 if self.lower_bound else 0.0

    def __str__(self) -> str:
        name = f" ({self.bank})" if self.bank else ""
        of = "" if self.capacity is None else f" of {self.capacity}"
        text = (
            f"arena {self.memory_id}{name}: {self.peak}{of} bytes for {self.tensors} tensors of"
            f" {self.total} bytes; largest live set {self.lower_bound} bytes"
            f" (+{100 * self.gap:.1f} %)"
        )
        if self.spilled:
            text += f"; {self.spilled} tensors of {self.spilled_bytes} bytes spilled"
        return text


@dataclass
class PlanReport:
    """The arenas of one method."""

    method: str = ""
    arenas: list[ArenaReport] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"method {self.method!r}", *(f"  {arena}" for arena in self.arenas)])
