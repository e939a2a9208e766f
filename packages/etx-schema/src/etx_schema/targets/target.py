# SPDX-License-Identifier: BSD-3-Clause
"""What a device can run: operators with their dtypes, backends, limits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etx_schema.entry_points import contributions, describe, name_of, use, warn_of
from etx_schema.errors import EtxError, TargetError
from etx_schema.problem import Problem
from etx_schema.targets.takes import check_row, joined, narrowed

if TYPE_CHECKING:
    from etx_schema.pte import PteFile

GROUP = "etx.targets"
CARRIED = "etx.targets.carried"
DEFAULT = "etx"
_KEYS = {
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
COUNTS = ("max_rank", "max_instructions", "max_data_bytes")
ARENAS = "arena_bytes"
LIMITS = (*COUNTS, ARENAS)


@dataclass(frozen=True)
class Target:
    """A device's abilities, as its JSON file states them.

    `operators` has an entry a kernel, which says what it takes (`takes.py`). `limits` may hold
    `max_rank`, `max_instructions` (of a method), `max_data_bytes` (of all that a file stores
    beside its tables, but for `etx/debug`) and `arena_bytes` (a list, by memory id from 1 on;
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

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        known: Mapping[str, Path] | None = None,
    ) -> Target:
        """Load a target by the name under which a package offers it, or from a JSON file.

        `a+b` is a device that has what both have. `known` adds names to those of packages.
        """
        names = {**target_paths(), **(known or {})}
        text = os.fspath(name_or_path)
        parts = [text] if os.path.isfile(text) else text.split("+")
        return reduce(_joined, [_load(part, names, ()) for part in parts])

    @classmethod
    def parse(cls, document: object, known: Mapping[str, Path] | None = None) -> Target:
        """Build a target from a JSON document; raise TargetError naming what is wrong in it."""
        names = {**target_paths(), **(known or {})}
        return _parse(document, names, Path(), ())

    def check(self, pte: PteFile, others: Iterable[Target] | None = None) -> list[Problem]:
        """Return everything that `pte` needs and this target lacks.

        Advice names those of `others` (the installed ones, unless they are given) that have it.
        """
        from etx_schema.targets.check import check

        return check(pte, self, others)


def installed_targets() -> dict[str, Target]:
    """Return the targets that installed packages offer and that can be read, by name."""
    return _loaded(target_paths())


def _loaded(paths: Mapping[str, Path]) -> dict[str, Target]:
    """Read targets; warn of those that cannot be read."""
    found = {}
    for name, path in paths.items():
        try:
            found[name] = Target.load(path)
        except EtxError as error:
            warn_of(f"target {name!r} cannot be used ({error})", "")
    return found


def target_paths() -> dict[str, Path]:
    """Return the targets that installed packages offer, by name, without broken ones.

    What is installed here goes before the table of the same name that a compiler carries.
    """
    return {**_paths(CARRIED), **_paths(GROUP)}


def device_target() -> Target | None:
    """Return what is installed here, kernels and backends together; else None."""
    found = list(_loaded(_paths(GROUP)).values())
    return reduce(_joined, found) if found else None


def _paths(group: str) -> dict[str, Path]:
    found = {}
    for entry in contributions(group):
        if entry.name in found:
            continue
        try:
            path = Path(use(entry))
            if not path.is_file():
                raise TargetError(f"{str(path)!r} is not a file")
            found[entry.name] = path
        except Exception as error:
            reason = str(error) if isinstance(error, EtxError) else describe(error)
            warn_of(f"target {entry.name!r} cannot be used ({reason})", name_of(entry.dist))
    return found


def _load(text: str, names: Mapping[str, Path], outer: tuple[Path, ...]) -> Target:
    if text.endswith(".json") or os.sep in text:
        return _read(Path(text), names, outer)
    if text not in names:
        known = ", ".join(names) or "none"
        raise TargetError(f"no target {text!r}; installed: {known}; or give a .json file")
    return _read(names[text], names, outer)


def _read(path: Path, names: Mapping[str, Path], outer: tuple[Path, ...]) -> Target:
    try:
        place = path.resolve()
    except (ValueError, OSError, RuntimeError) as error:
        raise TargetError(f"cannot read target {str(path)!r}: {error}") from error
    if place in outer:
        raise TargetError(f"target {path} extends itself")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TargetError(f"cannot read target {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise TargetError(f"target {path} is no JSON: {error}") from error
    try:
        return _parse(document, names, path.parent, (*outer, place))
    except TargetError as error:
        raise TargetError(f"target {path}: {error}") from None


def _parse(
    document: object, names: Mapping[str, Path], folder: Path, outer: tuple[Path, ...]
) -> Target:
    if not isinstance(document, dict):
        raise TargetError("expected an object")
    for key in document:
        if key not in _KEYS:
            raise TargetError(f"unknown key {key!r}; expected {', '.join(sorted(_KEYS))}")
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise TargetError("name: expected a string")
    own = Target(
        name=name,
        operators=_operators(_object(document, "operators")),
        description=str(document.get("description", "")),
        version=str(document.get("version", "")),
        backends=tuple(_strings(document, "backends")),
        limits=_limits(_object(document, "limits")),
        runtime=_object(document, "runtime"),
        elsewhere=_object(document, "elsewhere"),
    )
    bases = []
    for base in _strings(document, "extends"):
        place = str(folder / base) if base.endswith(".json") else base
        bases.append(_load(place, names, outer))
    if not bases:
        return own
    removed = _strings(document, "without")
    narrower = _operators(_object(document, "narrower"))
    kept = [_without(base, own.limits, removed, narrower) for base in bases]
    joined = reduce(_joined, [*kept, own])
    return replace(joined, name=own.name, version=own.version, description=own.description)


def _without(
    target: Target,
    limits: Mapping[str, Any],
    removed: Iterable[str],
    narrower: Mapping[str, Mapping[str, Any]],
) -> Target:
    """Return `target` with neither the limits that are stated anew nor the `removed` operators.

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


def _joined(one: Target, other: Target) -> Target:
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
    return Target(
        name=f"{one.name}+{other.name}",
        operators=operators,
        description=" + ".join(filter(None, (one.description, other.description))),
        version="+".join(filter(None, (one.version, other.version))),
        backends=tuple(dict.fromkeys((*one.backends, *other.backends))),
        limits=limits,
        runtime={**one.runtime, **other.runtime},
        elsewhere={key: elsewhere[key] for key in elsewhere if key not in operators},
    )


def _object(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise TargetError(f"{key}: expected an object")
    return value


def _strings(document: Mapping[str, Any], key: str) -> list[str]:
    value = document.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TargetError(f"{key}: expected a list of strings")
    return value


def _limits(limits: dict[str, Any]) -> dict[str, Any]:
    for key, value in limits.items():
        if key == ARENAS:
            sizes = value if isinstance(value, list) else [value]
            if sizes != value or not all(size is None or _is_count(size) for size in sizes):
                raise TargetError(f"limits: {key!r}: expected a list of sizes in bytes or null")
        elif key not in COUNTS:
            raise TargetError(f"limits: unknown limit {key!r}; expected {', '.join(LIMITS)}")
        elif not _is_count(value):
            raise TargetError(f"limits: {key!r}: expected an integer of 0 or more")
    return limits


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _operators(rows: dict[str, Any]) -> dict[str, Mapping[str, Any]]:
    for name, row in rows.items():
        check_row(name, row)
    return rows
