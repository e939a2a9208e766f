# SPDX-License-Identifier: BSD-3-Clause
"""Targets: devices by name, from JSON files and from installed packages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

from etx_schema.entry_points import warn_of
from etx_schema.errors import EtxError, TargetError
from etx_schema.problem import Problem
from etx_schema.pte import PteFile
from etx_schema.targets.check import check
from etx_schema.targets.device import Device, joined_devices, without
from etx_schema.targets.document import KEYS, limits_at, object_at, operators_at, strings_at
from etx_schema.targets.installed import GROUP, paths_of, target_paths


@dataclass(frozen=True)
class Target(Device):
    """A device as its JSON file states it."""

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        known: Mapping[str, Path] | None = None,
    ) -> Target:
        """Load a target by the name under which a package offers it, or from a JSON file.

        `a+b` is a device that has what both have. `known` adds names to those of packages.
        """
        text = os.fspath(name_or_path)
        parts = [text] if os.path.isfile(text) else text.split("+")
        return reduce(joined_devices, [_load(part, known or {}, ()) for part in parts])

    @classmethod
    def parse(cls, document: object, known: Mapping[str, Path] | None = None) -> Target:
        """Build a target from a JSON document; raise TargetError naming what is wrong in it."""
        stated = _object(document)
        return _extended(_own(stated), stated, known or {}, Path(), ())

    def check(self, pte: PteFile, others: Iterable[Target] | None = None) -> list[Problem]:
        """Return everything that `pte` needs and this target lacks.

        Advice names those of `others` (the installed ones, unless they are given) that have it.
        """
        return check(pte, self, lambda: installed_targets().values() if others is None else others)


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


def device_target() -> Target | None:
    """Return what is installed here, kernels and backends together; else None."""
    found = list(_loaded(paths_of(GROUP)).values())
    return reduce(joined_devices, found) if found else None


def _load(text: str, known: Mapping[str, Path], outer: tuple[Path, ...]) -> Target:
    if text.endswith(".json") or os.sep in text:
        return _read(Path(text), known, outer)
    if text in known:
        return _read(known[text], known, outer)
    installed = target_paths()
    if text not in installed:
        names = ", ".join({**installed, **known}) or "none"
        raise TargetError(f"unknown target {text!r}; expected a .json file or one of {names}")
    return _read(installed[text], known, outer)


def _read(path: Path, known: Mapping[str, Path], outer: tuple[Path, ...]) -> Target:
    try:
        place = path.resolve()
    except (ValueError, OSError, RuntimeError) as error:
        raise TargetError(f"cannot read target {str(path)!r}: {error}") from error
    if place in outer:
        raise TargetError(f"target {path} extends itself")
    try:
        status = path.stat()
        own, document = _stated(place, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise TargetError(f"cannot read target {path}: {error.strerror}") from error
    except TargetError as error:
        raise TargetError(f"target {path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise TargetError(f"target {path} is not JSON: {error}") from error
    try:
        return _extended(own, document, known, path.parent, (*outer, place))
    except TargetError as error:
        raise TargetError(f"target {path}: {error}") from None


@lru_cache(maxsize=32)
def _stated(path: Path, _changed: int, _size: int) -> tuple[Target, Mapping[str, Any]]:
    """Return what a file of these times and sizes says: the rows of operators take long."""
    document = _object(json.loads(path.read_text(encoding="utf-8")))
    return _own(document), document


def _object(document: object) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise TargetError("expected an object")
    return document


def _own(document: Mapping[str, Any]) -> Target:
    for key in document:
        if key not in KEYS:
            raise TargetError(f"unknown key {key!r}; expected {', '.join(sorted(KEYS))}")
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise TargetError("name: expected a string")
    return Target(
        name=name,
        operators=operators_at(document, "operators"),
        description=str(document.get("description", "")),
        version=str(document.get("version", "")),
        backends=tuple(strings_at(document, "backends")),
        limits=limits_at(document, "limits"),
        runtime=object_at(document, "runtime"),
        elsewhere=object_at(document, "elsewhere"),
    )


def _extended(
    own: Target,
    document: Mapping[str, Any],
    known: Mapping[str, Path],
    folder: Path,
    outer: tuple[Path, ...],
) -> Target:
    bases = []
    for base in strings_at(document, "extends"):
        place = str(folder / base) if base.endswith(".json") else base
        bases.append(_load(place, known, outer))
    if not bases:
        return own
    removed = strings_at(document, "without")
    narrower = operators_at(document, "narrower")
    kept = [without(base, own.limits, removed, narrower) for base in bases]
    joined = reduce(joined_devices, [*kept, own])
    return replace(joined, name=own.name, version=own.version, description=own.description)
