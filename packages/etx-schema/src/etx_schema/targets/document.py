# SPDX-License-Identifier: BSD-3-Clause
"""The fields of a target's JSON document, each checked as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from etx_schema.errors import TargetError
from etx_schema.targets.device import ARENAS, COUNTS, LIMITS
from etx_schema.targets.rows import check_row

KEYS = {
    "backends",
    "description",
    "elsewhere",
    "extends",
    "limits",
    "name",
    "narrower",
    "operators",
    "runtime",
    "version",
    "without",
}


def object_at(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object under `key`, empty when there is none."""
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise TargetError(f"{key}: expected an object")
    return value


def strings_at(document: Mapping[str, Any], key: str) -> list[str]:
    """Return the strings under `key`, none when there is no such key."""
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TargetError(f"{key}: expected a list of strings")
    return value


def limits_at(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the limits under `key`."""
    limits = object_at(document, key)
    for name, value in limits.items():
        if name == ARENAS:
            sizes = value if isinstance(value, list) else [value]
            if sizes != value or not all(size is None or _is_count(size) for size in sizes):
                raise TargetError(f"limits: {name!r}: expected a list of sizes in bytes or null")
        elif name not in COUNTS:
            raise TargetError(f"limits: unknown limit {name!r}; expected {', '.join(LIMITS)}")
        elif not _is_count(value):
            raise TargetError(f"limits: {name!r}: expected an integer of 0 or more")
    return limits


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def operators_at(document: Mapping[str, Any], key: str) -> dict[str, Mapping[str, Any]]:
    """Return the rows of operators under `key`."""
    rows: dict[str, Mapping[str, Any]] = object_at(document, key)
    for name, row in rows.items():
        check_row(name, row)
    return rows
