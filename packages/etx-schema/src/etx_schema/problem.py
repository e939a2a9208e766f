# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a program, and where."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_schema.segments import NamedBlob

DEBUG_KEY = "etx/debug"
"""Of named data that only people read; what backends add is behind it: `etx/debug/NAME`."""
CONSTRAINTS_KEY = "etx/constraints"
SHOWN = 3


def is_for_people(key: str) -> bool:
    """Tell whether named data of this key is only read by people: `strip` drops it."""
    return key == DEBUG_KEY or key.startswith(f"{DEBUG_KEY}/")


@dataclass(frozen=True)
class Problem:
    """One defect: what, in which method and instruction, from which line, and what to do.

    `kind` is `invalid` for what breaks the format's rules; else it says what a target lacks:
    `operator`, `dtype`, `backend`, or the name of a limit. `subject` names what is missing,
    `operator` the one that lacks a dtype.
    """

    message: str
    method: str = ""
    instruction: int | None = None
    module: str = ""
    source: str = ""
    hint: str = ""
    kind: str = "invalid"
    subject: str = ""
    operator: str = ""

    def __str__(self) -> str:
        place = self.method
        if self.instruction is not None:
            place += f", instruction {self.instruction}"
        origin = ", ".join(part for part in (self.module, self.source) if part)
        text = f"{place}: {self.message}" if place else self.message
        text += f" [{origin}]" if origin else ""
        return f"{text}; {self.hint}" if self.hint else text

    @property
    def place(self) -> str:
        """Where it is: method, instruction, module and source line, as far as they are known."""
        parts = [f"method {self.method}"] if self.method else []
        if self.instruction is not None:
            parts.append(f"instruction {self.instruction}")
        if self.module:
            parts.append(f"module {self.module}")
        return ", ".join([*parts, self.source] if self.source else parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return dict(vars(self))


def grouped(problems: Sequence[Problem]) -> dict[str, list[Problem]]:
    """Return the problems by message, in order of the first of each."""
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(problem.message, []).append(problem)
    return groups


def report(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield the lines of a report: what is wrong, how often, the first places, what to do."""
    for message, group in grouped(problems).items():
        times = f", {len(group)} times" if len(group) > 1 else ""
        yield f"  {message}{times}"
        places = [problem.place for problem in group if problem.place]
        yield from (f"    at {place}" for place in places[:SHOWN])
        if len(places) > SHOWN:
            yield f"    and {len(places) - SHOWN} more"
        if group[0].hint:
            yield f"    what to do: {group[0].hint}"


@dataclass(frozen=True)
class Origins:
    """Where the instructions and constants of a program come from, when its file says so."""

    rows: Mapping[str, list[Any]]
    names: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    handles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, named_data: Mapping[str, NamedBlob]) -> Origins:
        """Read the named data `etx/debug`; what is not as specified counts as absent."""
        found: dict[str, dict[str, Any]] = {"instructions": {}, "constants": {}, "handles": {}}
        kinds = {"instructions": list, "constants": dict, "handles": dict}
        for method, entry in read_json(named_data, DEBUG_KEY).items():
            for key, kind in kinds.items():
                if isinstance(entry, dict) and isinstance(entry.get(key), kind):
                    found[key][method] = entry[key]
        return cls(found["instructions"], found["constants"], found["handles"])

    def constant(self, method: str, index: int) -> str | None:
        """Return the name of the constant that tensors of `method` know by `data_buffer_idx`."""
        name = self.names.get(method, {}).get(str(index))
        return name if isinstance(name, str) and name else None

    def get(self, method: str, instruction: int) -> dict[str, str]:
        """Return `module`, `source` and `op` of an instruction, as far as known."""
        return _strings(self._row(method, instruction))

    def handles_of(self, method: str, instruction: int) -> list[int]:
        """Return the debug handles of an instruction; several for the call of a delegate."""
        return _integers(self._row(method, instruction).get("handles"))

    def inner(self, method: str, instruction: int) -> dict[int, dict[str, str]]:
        """Return what the file says of the nodes inside a delegate, by debug handle."""
        table = self.handles.get(method, {})
        found = {h: table.get(str(h)) for h in self.handles_of(method, instruction)}
        return {h: _strings(row) for h, row in found.items() if isinstance(row, dict)}

    def delegated(self, method: str, instruction: int) -> dict[str, list[int]]:
        """Return the debug handles of each id that the backend of a delegate gave its parts."""
        ids = self._row(method, instruction).get("ids")
        if not isinstance(ids, dict):
            return {}
        return {key: _integers(handles) for key, handles in ids.items()}

    def _row(self, method: str, instruction: int) -> dict[str, Any]:
        rows = self.rows.get(method, [])
        row = rows[instruction] if 0 <= instruction < len(rows) else None
        return row if isinstance(row, dict) else {}


def _strings(row: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in row.items() if isinstance(value, str) and value}


def _integers(items: object) -> list[int]:
    return [i for i in items if isinstance(i, int)] if isinstance(items, list) else []


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
