# SPDX-License-Identifier: BSD-3-Clause
"""Commands of other packages, and of packages that are not installed."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from etx_schema.entry_points import (
    contributions,
    describe,
    name_of,
    use,
    warn_of,
)
from etx_schema.errors import EtxError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = "etx.commands"
ELSEWHERE = {
    "backends": "etx-exir",
    "bench": "etx-runtime etx-kernels-portable",
    "bundle": "etx-devtools",
    "compare": "etx-devtools etx-exir etx-runtime etx-kernels-portable",
    "compile": "etx-exir",
    "count": "etx-backend-arm etx-kernels-portable",
    "diff": "etx-devtools",
    "firmware": "etx-backend-arm etx-kernels-portable",
    "profile": "etx-devtools etx-runtime etx-kernels-portable",
    "report": "etx-devtools",
    "run": "etx-runtime etx-kernels-portable",
    "select": "etx-kernels-portable",
    "size": "etx-devtools",
    "verify": "etx-devtools etx-runtime etx-kernels-portable",
}
"""Commands of other packages: the package that brings each, and what else it needs."""


def add_contributed(parser: argparse.ArgumentParser, subparsers: Any, command: str) -> None:
    """Add the commands of other packages, or only `command` where it is known.

    An entry point has the name of the command that it adds.
    """
    added = [] if command in subparsers.choices else contributions(COMMANDS)
    broken: dict[str, tuple[str, str]] = {}
    for entry in [entry for entry in added if entry.name == command] or added:
        if reasons := _contribute(parser, subparsers, entry):
            broken.setdefault(entry.name, reasons)
    for name in sorted(broken.keys() - subparsers.choices.keys()):
        _register_broken(subparsers, name, *broken[name])
    for name in sorted(ELSEWHERE.keys() - subparsers.choices.keys()):
        package = ELSEWHERE[name].split()[0]
        text = f"the command {name!r} comes with {package}, which is not installed in {sys.prefix}"
        problem = f"{text}; install {ELSEWHERE[name].replace(' ', ' and ')}"
        _register_broken(subparsers, name, f"comes with {package}", problem)


def _contribute(
    parser: argparse.ArgumentParser, subparsers: Any, entry: EntryPoint
) -> tuple[str, str] | None:
    """Let a package add its command and nothing but that, else return why not: short and long."""
    commands = subparsers.choices
    before, rows = dict(commands), len(subparsers._choices_actions)
    reason = ""
    try:
        use(entry, subparsers)
        parser.format_help()
        commands[entry.name].format_help()
    except EtxError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{entry.value}: {describe(error)}"
    if entry.name in before or commands.keys() != {*before, entry.name}:
        names = ", ".join(sorted({name for name in commands if name not in before})) or "nothing"
        reason = reason or f"{entry.value}: it adds {names}"
    if any(commands.get(name) is not found for name, found in before.items()):
        reason = reason or f"{entry.value}: it replaces another command"
    if not reason:
        return None
    commands.clear()
    commands.update(before)
    del subparsers._choices_actions[rows:]
    package = name_of(entry.dist)
    if entry.name in before:
        warn_of(f"a command {entry.name!r} is not added ({reason})", package)
    fix = f"; reinstall or remove {package}" if package else ""
    problem = f"the command {entry.name!r} does not load: {reason}{fix}"
    return f"not usable: {reason}", problem


def _register_broken(subparsers: Any, name: str, summary: str, problem: str) -> None:
    summary = summary.replace("%", "%%")
    parser = subparsers.add_parser(name, help=summary, add_help=False, prefix_chars="\0")
    parser.add_argument("rest", nargs="*")

    def run(_: argparse.Namespace) -> None:
        raise EtxError(problem)

    parser.set_defaults(run=run)
