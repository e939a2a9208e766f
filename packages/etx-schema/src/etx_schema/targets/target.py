# SPDX-License-Identifier: BSD-3-Clause
"""Targets: devices by name, from JSON files and from installed packages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

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
        names = {**target_paths(), **(known or {})}
        text = os.fspath(name_or_path)
        parts = [text] if os.path.isfile(text) else text.split("+")
        return reduce(joined_devices, [_load(part, names, ()) for part in parts])

    @classmethod
    def parse(cls, document: object, known: Mapping[str, Path] | None = None) -> Target:
        """Build a target from a JSON document; raise TargetError naming what is wrong in it."""
        names = {**target_paths(), **(known or {})}
        return _parse(document, names, Path(), ())

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


def _load(text: str, names: Mapping[str, Path], outer: tuple[Path, ...]) -> Target:
    if text.endswith(".json") or os.sep in text:
        return _read(Path(text), names, outer)
    if text not in names:
        known = ", ".join(names) or "none"
        raise TargetError(f"unknown target {text!r}; expected a .json file or one of {known}")
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
        raise TargetError(f"target {path} is not JSON: {error}") from error
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
        if key not in KEYS:
            raise TargetError(f"unknown key {key!r}; expected {', '.join(sorted(KEYS))}")
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise TargetError("name: expected a string")
    own = Target(
        name=name,
        operators=operators_at(document, "operators"),
        description=str(document.get("description", "")),
        version=str(document.get("version", "")),
        backends=tuple(strings_at(document, "backends")),
        limits=limits_at(document, "limits"),
        runtime=object_at(document, "runtime"),
        elsewhere=object_at(document, "elsewhere"),
    )
    bases = []
    for base in strings_at(document, "extends"):
        place = str(folder / base) if base.endswith(".json") else base
        bases.append(_load(place, names, outer))
    if not bases:
        return own
    removed = strings_at(document, "without")
    narrower = operators_at(document, "narrower")
    kept = [without(base, own.limits, removed, narrower) for base in bases]
    joined = reduce(joined_devices, [*kept, own])
    return replace(joined, name=own.name, version=own.version, description=own.description)
