# SPDX-License-Identifier: BSD-3-Clause
"""Entry points of installed packages, without the 20 ms and 3 MB of ``importlib.metadata``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

from etx_schema import entry_points as contributed
from etx_schema.entry_points import warn_of


class EntryPoint(NamedTuple):
    """A name, an object as `module:attribute`, and the distribution that offers it."""

    name: str
    value: str
    dist: str

    def load(self) -> Any:
        """Import the object."""
        module, _, attributes = self.value.partition("[")[0].strip().partition(":")
        result = import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            result = getattr(result, attribute)
        return result


def entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of `group`, of two equal distributions those of the first on the
    path."""
    finders = [f for f in sys.meta_path if getattr(f, "find_distributions", None) is not None]
    if finders != [PathFinder]:
        found = contributed.entries(group)
        return [EntryPoint(e.name, e.value, contributed.name_of(e.dist) or e.value) for e in found]
    entries: dict[str, list[EntryPoint]] = {}
    for folder in sys.path:
        for dist, path in _distributions(folder or os.curdir):
            if dist not in entries:
                entries[dist] = []
                try:
                    entries[dist] = [EntryPoint(*line, dist) for line in _section(path, group)]
                except UnicodeDecodeError as error:
                    reason = contributed.describe(error)
                    warn_of(f"the entry points of {dist} cannot be read ({reason})", dist)
    return [entry for found in entries.values() for entry in found]


def _distributions(folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and metadata folder of what is installed in `folder`."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            stem = name.rpartition(".")[0].partition("-")[0]
            yield stem.lower().replace("_", "-").replace(".", "-"), f"{folder}{os.sep}{name}"


def _section(path: str, group: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of one section of a distribution's entry points."""
    try:
        with open(f"{path}{os.sep}entry_points.txt", "rb", buffering=0) as file:
            text = file.read()
    except OSError:
        return
    if group.encode() not in text:  # as most have not
        return
    current = None
    for line in map(str.strip, text.decode().splitlines()):
        if line.startswith("[") and line.endswith("]"):
            current = line[1:-1].strip()
        elif current == group and not line.startswith(("#", ";")):
            name, separator, value = line.partition("=")
            if separator:
                yield name.strip(), value.strip()
