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
    """A slot holds `factor` times the exported value `name`, its dimensions in `order`.

    -1 in `order` is a dimension of size 1 that the exported value lacks.
    """

    name: str
    factor: float = 1.0
    order: tuple[int, ...] = ()

    def __str__(self) -> str:
        scaled = self.name if self.factor == 1 else f"{self.name} * {self.factor:g}"
        return f"{scaled}.permute{self.order}" if self.order else scaled

    def apply(self, value: Tensor) -> Tensor:
        """Return what the slot holds where the exported value is `value`."""
        moved = value
        if self.order:
            moved = moved.permute(self._kept)
            moved = moved[tuple(None if dim < 0 else slice(None) for dim in self.order)]
        return moved * self.factor if self.factor != 1 else moved

    def undo(self, held: Tensor) -> Tensor:
        """Return the exported value of which the slot holds `held`."""
        plain = held / self.factor if self.factor != 1 else held
        if not self.order:
            return plain
        plain = plain[tuple(0 if dim < 0 else slice(None) for dim in self.order)]
        return plain.permute([self._kept.index(dim) for dim in range(plain.dim())])

    def fits(self, value: Tensor) -> bool:
        """Whether `value` has the dimensions that are permuted."""
        return not self.order or sorted(self._kept) == list(range(value.dim()))

    def holds(self, held: Tensor) -> bool:
        """Whether `held` has as many dimensions as there are after the permutation."""
        return not self.order or (
            held.dim() == len(self.order) and sorted(self._kept) == list(range(len(self._kept)))
        )

    @property
    def _kept(self) -> list[int]:
        return [dim for dim in self.order if dim >= 0]


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
