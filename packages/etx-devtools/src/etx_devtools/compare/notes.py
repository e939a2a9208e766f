# SPDX-License-Identifier: BSD-3-Clause
"""What a file says of the values that its instructions compute."""

from __future__ import annotations

from dataclasses import dataclass, field

from etx_schema import PteFile
from etx_schema.problem import DEBUG_KEY, read_json

__all__ = ["Note", "Notes", "notes_of"]


@dataclass(frozen=True)
class Note:
    """A slot holds `factor` times the exported value `name`."""

    name: str
    factor: float = 1.0


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
    if not isinstance(row, list) or len(row) != 2:
        return None
    name, factor = row
    is_number = isinstance(factor, (int, float)) and factor != 0
    return Note(name, float(factor)) if isinstance(name, str) and is_number else None
