# SPDX-License-Identifier: BSD-3-Clause
"""`etx targets`: list the installed targets, or describe one."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etx_schema.entry_points import contributions, describe, name_of, use, version_of
from etx_schema.errors import EtxError


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "targets",
        help="list the installed targets, or describe one",
        description="List what devices there are to compile for, or all that one of them has.",
        epilog="example: etx targets executorch",
    )
    parser.add_argument("target", metavar="NAME|FILE", nargs="?", help="describe this one")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from etx_schema.targets.installed import CARRIED, GROUP

    if options.target is not None:
        _describe(options.target, as_json=options.json)
        return
    here = contributions(GROUP)
    names = {entry.name for entry in here}
    carried = [entry for entry in contributions(CARRIED) if entry.name not in names]
    rows = [_row(entry) for entry in sorted([*carried, *here], key=lambda entry: entry.name)]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    if not rows:
        print("no targets are installed; etx-exir and kernel packages bring some")
    for row in rows:
        print(_line(row))


def _row(entry: Any) -> dict[str, Any]:
    """Describe what a package offers in a few fields; `error` when it cannot be read."""
    from etx_schema.targets.target import Target

    dist = entry.dist
    row: dict[str, Any] = {
        "name": entry.name,
        "package": name_of(dist) or None,
        "package_version": version_of(dist) or None,
    }
    try:
        path = Path(use(entry))
        target = Target.load(path)
    except EtxError as error:
        return row | {"error": str(error)}
    except Exception as error:
        return row | {"error": f"{entry.value}: {describe(error)}"}
    return row | {
        "version": target.version,
        "description": target.description,
        "operators": len(target.operators),
        "backends": list(target.backends),
        "limits": dict(target.limits),
        "path": str(path),
    }


def _line(row: dict[str, Any]) -> str:
    package = f" ({row['package']} {row['package_version']})" if row["package"] else ""
    if "error" in row:
        return f"{row['name']}{package}: not usable: {row['error']}"
    backends = f"backends {', '.join(row['backends'])}" if row["backends"] else "no backends"
    title = _titled(row["name"], row["version"])
    return f"{title}{package}: {row['operators']} operators, {backends}; {row['description']}"


def _titled(name: str, version: str) -> str:
    return f"{name} {version}" if version else name


def _describe(name: str, *, as_json: bool) -> None:
    from etx_schema.targets.installed import CARRIED, GROUP
    from etx_schema.targets.target import Target

    target = Target.load(name)
    if as_json:
        print(json.dumps(vars(target), indent=1))
        return
    if os.path.isfile(name):
        print(f"{_titled(target.name, target.version)}: {target.description}")
    else:
        offered = (*reversed(contributions(CARRIED)), *reversed(contributions(GROUP)))
        found = {entry.name: entry for entry in offered}
        parts = [found[part] for part in name.split("+") if part in found]
        print(*[_line(_row(entry)) for entry in parts], sep="\n")
    print(*_details(target), sep="\n")


def _details(target: Any) -> Iterator[str]:
    from etx_schema.targets.rows import spelled

    yield f"  backends: {', '.join(target.backends) or 'none'}"
    for key, value in target.limits.items():
        yield f"  {key}: {value}"
    for name, version in target.runtime.items():
        yield f"  runtime {name}: {version}"
    yield f"  operators ({len(target.operators)})"
    for name, row in sorted(target.operators.items()):
        yield f"    {name}: {spelled(row)}"
    for name, where in target.elsewhere.items():
        yield f"    not {name}, which target {where} has"
