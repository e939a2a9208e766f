# SPDX-License-Identifier: BSD-3-Clause
"""`etx --version`: what is installed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from etx_schema._version import __version__
from etx_schema.entry_points import (
    contributions,
    describe,
    name_of,
    version_of,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Version(argparse.Action):
    """An option that prints the versions and stops."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print one line each."""
        for line in versions():
            print(line)
        parser.exit()


def versions() -> list[str]:
    """List the installed packages, the ABI and libraries they hold, plugins, targets."""
    from importlib.metadata import distributions

    found = {name_of(each): each for each in distributions()}
    rows = {name: version_of(each) for name, each in found.items() if name.startswith("etx-")}
    rows.setdefault("etx-schema", __version__)
    lines = [f"{name} {rows[name]}" for name in sorted(rows)]
    lines += [f"{entry.name} ABI: {_load(entry)}" for entry in contributions("etx.abi")]
    lines += [f"{entry.name} {_called(entry)}" for entry in contributions("etx.versions")]
    for what, group in (("plugins", "etx.plugins"), ("targets", "etx.targets")):
        names = [_offered(entry) for entry in contributions(group)]
        lines.append(f"{what}: {', '.join(names) or 'none'}")
    return lines


def _offered(entry: EntryPoint) -> str:
    package = name_of(entry.dist)
    return f"{entry.name} ({package})" if package else entry.name


def _called(entry: EntryPoint) -> object:
    found = _load(entry)
    return found() if callable(found) else found


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"not known: {describe(error)}"
