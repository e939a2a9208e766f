# SPDX-License-Identifier: BSD-3-Clause
"""What a device can run: operators with what they take, backends, limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from etx_schema.errors import TargetError
from etx_schema.targets.rows import joined, narrowed

COUNTS = ("max_rank", "max_instructions", "max_data_bytes")
ARENAS = "arena_bytes"
LIMITS = (*COUNTS, ARENAS)


@dataclass(frozen=True)
class Device:
    """A device's abilities, as its JSON file states them.

    `operators` has an entry a kernel, which says what it takes (`rows.py`). `limits` may hold
    `max_rank`, `max_instructions` (of a method), `max_data_bytes` (of all that a file stores
    beside its tables, except `etx/debug`) and `arena_bytes` (a list, by memory id from 1 on;
    None: unlimited). `elsewhere` names, for an operator that is missing, a target that has it.
    """

    name: str
    operators: Mapping[str, Mapping[str, Any]]
    description: str = ""
    version: str = ""
    backends: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)


D = TypeVar("D", bound=Device)


def without(
    target: D,
    limits: Mapping[str, Any],
    removed: Iterable[str],
    narrower: Mapping[str, Mapping[str, Any]],
) -> D:
    """Return `target` with neither the limits that are stated again nor the `removed` operators.

    Operators that are `narrower` take what both rows take.
    """
    left = {key: value for key, value in target.limits.items() if key not in limits}
    gone = set(removed)
    operators = {
        k: narrowed(row, narrower[k]) if k in narrower else row
        for k, row in target.operators.items()
        if k not in gone
    }
    return replace(target, limits=left, operators=operators)


def joined_devices(one: D, other: D) -> D:
    """Return a device with the operators and backends of both, under the narrower limits."""
    operators = {**one.operators, **other.operators}
    for name in one.operators.keys() & other.operators.keys():
        operators[name] = joined(one.operators[name], other.operators[name])
    elsewhere = {**one.elsewhere, **other.elsewhere}
    limits: dict[str, Any] = {**one.limits, **other.limits}
    for key in one.limits.keys() & other.limits.keys():
        if key in COUNTS:
            limits[key] = min(one.limits[key], other.limits[key])
        elif one.limits[key] != other.limits[key]:
            raise TargetError(
                f"targets {one.name!r} and {other.name!r} have different limits {key!r}; "
                "write a .json file that extends both and states it"
            )
    return replace(
        one,
        name=f"{one.name}+{other.name}",
        operators=operators,
        description=" + ".join(filter(None, (one.description, other.description))),
        version="+".join(filter(None, (one.version, other.version))),
        backends=tuple(dict.fromkeys((*one.backends, *other.backends))),
        limits=limits,
        runtime={**one.runtime, **other.runtime},
        elsewhere={key: elsewhere[key] for key in elsewhere if key not in operators},
    )
