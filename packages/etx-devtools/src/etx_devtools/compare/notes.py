# SPDX-License-Identifier: BSD-3-Clause
"""What a file says of the values that its instructions compute."""

from __future__ import annotations

from dataclasses import dataclass, field

from etx_schema import PteFile
from etx_schema.problem import DEBUG_KEY, read_json
from torch import Tensor

__all__ = ["Note", "Notes", "notes_of"]


@dataclass(frozen=True)
class Note:
    """A slot holds `factor` times the exported value `name`, its dimensions in `order`."""

    name: str
    factor: float = 1.0
    order: tuple[int, ...] = ()

    def __str__(self) -> str:
        scaled = self.name if self.factor == 1 else f"{self.name} * {self.factor:g}"
        return f"{scaled}.permute{self.order}" if self.order else scaled

    def apply(self, value: Tensor) -> Tensor:
        """Return what the slot holds where the exported value is `value`."""
        moved = value.permute(self.order) if self.order else value
        return moved * self.factor if self.factor != 1 else moved

    def undo(self, held: Tensor) -> Tensor:
        """Return the exported value of which the slot holds `held`."""
        plain = held / self.factor if self.factor != 1 else held
        if not self.order:
            return plain
        return plain.permute([self.order.index(dim) for dim in range(plain.dim())])

    def fits(self, value: Tensor) -> bool:
        """Whether `value` has the dimensions that are permuted."""
        return not self.order or sorted(self.order) == list(range(value.dim()))


@dataclass
class Notes:
    """Notes by slot; `known` is false where the file says nothing, as one that was stripped."""

    values: dict[int, Note] = field(default_factory=dict)
    known: bool = False


def notes_of(pte: PteFile, method: str) -> Notes:
    """Read `values` of a method's entry in `etx/debug`; what is not as specified is left out."""
    entry = read_json(pte.named_data, DEBUG_KEY).get(method)
    rows = entry.get("values") if isinstance(entry, dict) else None
    if not isinstance(rows, dict):
        return Notes()
    found = {}
    for key, row in rows.items():
        note = _note(row)
        if key.isdecimal() and note is not None:
            found[int(key)] = note
    return Notes(found, True)


def _note(row: object) -> Note | None:
    if isinstance(row, str):
        return Note(row)
    if not isinstance(row, list) or len(row) not in (2, 3):
        return None
    name, factor, *rest = row
    if not isinstance(name, str) or not isinstance(factor, (int, float)) or factor == 0:
        return None
    order = rest[0] if rest else []
    is_order = isinstance(order, list) and all(isinstance(dim, int) for dim in order)
    return Note(name, float(factor), tuple(order)) if is_order else None
