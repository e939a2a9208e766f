# SPDX-License-Identifier: BSD-3-Clause
"""The log of `etx compile --stages`: what each pass changed, and why operators stayed outside."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from etx_schema import Blob, EtxError

__all__ = ["Log", "beside", "read_log"]

FORMAT, VERSION = "etx/stages", 1
ROWS, SHOWN = 200, 1000
Place = tuple[str, str, str]
"""Operator in the model, module, source line."""
Log = dict[str, Any]
"""The method entries of a log, by name."""


def beside(path: str) -> str | None:
    """Return the name of the log that `etx compile --stages` wrote next to `path`, if it did."""
    name = f"{path}.stages.json"
    return name if Path(name).is_file() else None


def read_log(path: str, blob: Blob) -> Log:
    """Return the methods of a log; EtxError where it is not one, or not of the file `blob`."""
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise EtxError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise EtxError(f"{path} is not the JSON of etx compile --stages: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise EtxError(f"{path} is not a log of etx compile --stages: its format is not {FORMAT}")
    if found.get("version") != VERSION:
        raise EtxError(
            f"{path} has version {found.get('version')!r} of {FORMAT}, expected {VERSION}"
        )
    file, view = found.get("file"), memoryview(blob)
    if not isinstance(file, dict) or file.get("crc32") != zlib.crc32(view):
        raise EtxError(f"{path} is of another file: compile with --stages again")
    methods = found.get("methods")
    return methods if isinstance(methods, dict) else {}


def stages_of(
    entry: Mapping[str, Any], handles: Sequence[Sequence[int]], texts: Callable[[str], int]
) -> list[list[Any]]:
    """Return rows of name, equation, changed, operators before and after, removed, added.

    Removed and added are rows of operator, module, line, times and the instructions of the file
    that come from the same nodes; `handles` are those of each instruction.
    """
    owners: dict[int, list[int]] = defaultdict(list)
    for index, own in enumerate(handles):
        for handle in own:
            owners[handle].append(index)
    rows = []
    for stage in _dicts(entry.get("stages")):
        before, after = (_number(each) for each in (*_list(stage.get("operators")), 0, 0)[:2])
        sides = [
            [_group(row, owners, texts) for row in _list(stage.get(word))[:ROWS]]
            for word in ("removed", "added")
        ]
        name, equation = (texts(_text(stage.get(word))) for word in ("name", "equation"))
        rows.append([name, equation, int(bool(stage.get("changed"))), before, after, *sides])
    return rows


def _group(row: Any, owners: Mapping[int, list[int]], texts: Callable[[str], int]) -> list[Any]:
    cells = (*_list(row), "", "", "", 0, [])[:5]
    found = {i for handle in _list(cells[4]) if isinstance(handle, int) for i in owners[handle]}
    return [*(texts(_text(cell)) for cell in cells[:3]), _number(cells[3]), sorted(found)[:ROWS]]


def reasons_of(
    entry: Mapping[str, Any],
    places: Mapping[Place, list[int]],
    texts: Callable[[str], int],
) -> list[list[Any]]:
    """Return rows of operator, partitioner, reason, times, instructions; the most frequent first.

    `places` are the instructions by operator in the model, module and source line.
    """
    times: dict[tuple[str, str, str], int] = defaultdict(int)
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for each in _dicts(entry.get("outside")):
        operator, module, source = (_text(each.get(k)) for k in ("operator", "module", "source"))
        reasons = each.get("reasons")
        for who, why in (reasons if isinstance(reasons, dict) else {}).items():
            key = operator, _text(who), _text(why)
            times[key] += 1
            found[key].update(places.get((operator, module, source), ()))
    rows = sorted(times, key=lambda key: -times[key])[:SHOWN]
    return [[*map(texts, key), times[key], sorted(found[key])[:ROWS]] for key in rows]


def reasons_by_place(entry: Any) -> dict[Place, str]:
    """Return what a partitioner said of each operator that stayed outside."""
    found: dict[Place, str] = {}
    for each in _dicts(entry.get("outside") if isinstance(entry, dict) else None):
        operator, module, source = (_text(each.get(k)) for k in ("operator", "module", "source"))
        reasons = each.get("reasons")
        for why in (reasons if isinstance(reasons, dict) else {}).values():
            found.setdefault((operator, module, source), _text(why))
    return found


def left_of(entry: Mapping[str, Any], texts: Callable[[str], int]) -> list[list[Any]]:
    """Return rows of operator, pass, reason, times, place: what passes left for want of little."""
    return [
        [
            *(texts(_text(each.get(key))) for key in ("operator", "by", "reason")),
            _number(each.get("times")),
            texts(", ".join(filter(None, (_text(each.get(k)) for k in ("module", "source"))))),
        ]
        for each in _dicts(entry.get("declined"))[:SHOWN]
    ]


def _list(item: Any) -> list[Any]:
    return item if isinstance(item, list) else []


def _dicts(item: Any) -> list[dict[str, Any]]:
    return [each for each in _list(item) if isinstance(each, dict)]


def _text(item: Any) -> str:
    return item if isinstance(item, str) else ""


def _number(item: Any) -> int:
    return item if isinstance(item, int) else 0
