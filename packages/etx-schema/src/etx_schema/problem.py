# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a program, and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from etx_schema.segments import NamedBlob

DEBUG_KEY = "etx/debug"
CONSTRAINTS_KEY = "etx/constraints"


@dataclass(frozen=True)
class Problem:
    """One defect: what, in which method and instruction, from which line, and what to do."""

    message: str
    method: str = ""
    instruction: int | None = None
    module: str = ""
    source: str = ""
    hint: str = ""

    def __str__(self) -> str:
        place = self.method
        if self.instruction is not None:
            place += f", instruction {self.instruction}"
        origin = ", ".join(part for part in (self.module, self.source) if part)
        text = f"{place}: {self.message}" if place else self.message
        text += f" [{origin}]" if origin else ""
        return f"{text}; {self.hint}" if self.hint else text

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Origins:
    """Where the instructions and constants of a program come from, when its file says so."""

    rows: Mapping[str, list[Any]]
    names: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, named_data: Mapping[str, NamedBlob]) -> Origins:
        """Read the named data `etx/debug`; what is not as specified counts as absent."""
        document = read_json(named_data, DEBUG_KEY)
        rows: dict[str, list[Any]] = {}
        names: dict[str, Mapping[str, Any]] = {}
        for method, entry in document.items():
            if not isinstance(entry, dict):
                continue
            if isinstance(entry.get("instructions"), list):
                rows[method] = entry["instructions"]
            if isinstance(entry.get("constants"), dict):
                names[method] = entry["constants"]
        return cls(rows, names)

    def constant(self, method: str, index: int) -> str | None:
        """Return the name of the constant that tensors of `method` know by `data_buffer_idx`."""
        name = self.names.get(method, {}).get(str(index))
        return name if isinstance(name, str) and name else None

    def get(self, method: str, instruction: int) -> dict[str, str]:
        """Return `module`, `source` and `op` of an instruction, as far as known."""
        rows = self.rows.get(method, [])
        row = rows[instruction] if instruction < len(rows) else None
        if not isinstance(row, dict):
            return {}
        return {key: value for key, value in row.items() if isinstance(value, str) and value}


def read_json(named_data: Mapping[str, NamedBlob], key: str) -> dict[str, Any]:
    """Return the JSON object stored under `key`, empty when there is none."""
    blob = named_data.get(key)
    if blob is None:
        return {}
    try:
        document = json.loads(bytes(blob.data))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
