# SPDX-License-Identifier: BSD-3-Clause
"""What the page shows of two files: the second one, and next to it the first."""

from __future__ import annotations

from typing import Any

from etx_schema import Blob
from etx_schema.files import PathLike

from etx_devtools.diff import Difference, MethodDifference, diff
from etx_devtools.diff.commands import lines
from etx_devtools.report.data import LARGEST, shown

__all__ = ["compared"]

SHOWN = 500


def compared(
    before: tuple[PathLike | Blob, dict[str, Any]], after: tuple[PathLike | Blob, dict[str, Any]]
) -> dict[str, Any]:
    """Return the document of `after` with that of `before`, their pairs and changes.

    Both are given by source and `document`.
    """
    found = diff(before[0], after[0])
    return after[1] | {
        "before": before[1],
        "changes": {
            "methods": {each.name: _method(each) for each in found.methods},
            "lines": [shown(line) for line in _file_lines(found)],
        },
    }


def _file_lines(found: Difference) -> list[str]:
    """Return what changed of the whole file: all that is not about a method."""
    return [line for line in lines(found, 0) if not line.startswith((" ", "method "))][1:]


def _json(number: float | None) -> float | None:
    return None if number is None else min(number, LARGEST)


def _method(found: MethodDifference) -> dict[str, Any]:
    before = [-1] * found.instructions[1]
    for old, new in found.pairs:
        before[new.index] = old.index
    changes = [[each.kind, shown(each.text), each.before, each.after] for each in found.changes]
    weights = [
        [shown(each.name), each.change, shown(each.before), shown(each.after), _json(each.largest)]
        for each in found.weights
    ]
    return {
        "pairs": before,
        "changes": changes[:SHOWN],
        "count": len(changes),
        "weights": weights[:SHOWN],
        "signature": [shown(line) for line in found.signature],
    }
