# SPDX-License-Identifier: BSD-3-Clause
"""The other commands: `etx check`, `etx targets`, `etx memory`, `etx strip`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etx_schema.entry_points import contributions, describe, name_of, use, version_of
from etx_schema.errors import EtxError, ProgramError
from etx_schema.files import is_stream
from etx_schema.problem import Problem, grouped, report

__all__ = ["register"]

RUNTIME = "etx.abi"


def register(subparsers: Any) -> None:
    """Add the commands to `etx`."""
    check = subparsers.add_parser(
        "check",
        help="verify a .pte file and compare it with what is installed, or with targets",
        description="Verify a program and list everything in it that each target lacks: where, "
        "how often, and what to do. Without --target it is compared with what is installed here. "
        "Exit code 1 if anything is wrong or missing.",
        epilog="example: etx check model.pte --target executorch --target board.json",
    )
    check.add_argument("file", help="a .pte file")
    check.add_argument(
        "--target",
        metavar="NAME|FILE",
        action="append",
        default=[],
        help="an installed target, a .json file, or a+b for both together; may be repeated",
    )
    check.add_argument("--json", action="store_true", help="print one JSON document")
    check.set_defaults(run=_check)
    targets = subparsers.add_parser(
        "targets",
        help="list the installed targets, or describe one",
        description="List what devices there are to compile for, or all that one of them has.",
        epilog="example: etx targets executorch",
    )
    targets.add_argument("target", metavar="NAME|FILE", nargs="?", help="describe this one")
    targets.add_argument("--json", action="store_true", help="print one JSON document")
    targets.set_defaults(run=_targets)
    memory = subparsers.add_parser(
        "memory",
        help="print or draw the planned memory of a .pte file",
        description="Recompute from the instructions which bytes of each arena are wanted when.",
        epilog="example: etx memory model.pte -o model.svg",
    )
    memory.add_argument("file", help="a .pte file")
    memory.add_argument(
        "-o", "--output", metavar="FILE", help="write a picture (.svg), text (.txt) or .json"
    )
    memory.add_argument("--json", action="store_true", help="print one JSON document")
    memory.set_defaults(run=_memory)
    strip = subparsers.add_parser(
        "strip",
        help="remove debug information from a .pte file",
        description="Write a .pte file without the source lines of its instructions (the named "
        "data etx/debug) and without stack traces. Calls give the same results.",
        epilog="example: etx strip model.pte -o small.pte",
    )
    strip.add_argument("file", help="a .pte file")
    strip.add_argument("-o", "--output", metavar="FILE", required=True, help="the .pte to write")
    strip.set_defaults(run=_strip)


def _check(options: argparse.Namespace) -> int:
    from etx_schema.pte_reader import read_pte
    from etx_schema.verifier import verify

    targets, place = _chosen(options.target)
    try:
        pte = read_pte(options.file)
    except ProgramError as error:
        raise EtxError(f"{options.file}: {error}") from error
    invalid = verify(pte)
    missing = [(target, target.check(pte)) for target in targets]
    elsewhere = _not_here(pte) if options.target else []
    if options.json:
        document = {
            "file": options.file,
            "problems": _rows(invalid),
            "targets": [{"name": t.name, "problems": _rows(found)} for t, found in missing],
            "backends_not_installed_here": elsewhere,
        }
        print(json.dumps(document, indent=1))
    else:
        _print_check(options.file, invalid, [(t.name, found) for t, found in missing], place)
        if elsewhere:
            print(f"  it calls {', '.join(elsewhere)}, not installed here: it cannot run here")
    return 1 if invalid or any(found for _, found in missing) else 0


def _chosen(names: list[str]) -> tuple[list[Any], str]:
    """Return the targets by name; without any what is installed here, else what ETX brings.

    The text says of the latter two which it is.
    """
    from etx_schema.targets.target import DEFAULT, Target, device_target, target_paths

    if names:
        return [Target.load(name) for name in names], ""
    here = device_target()
    if here is not None:
        return [here], ", which is installed here"
    if contributions(RUNTIME):
        return [Target("this installation", {})], ", a runtime without kernels"
    default = [Target.load(DEFAULT)] if DEFAULT in target_paths() else []
    return default, "; nothing that runs it is installed here"


def _not_here(pte: Any) -> list[str]:
    """Return the backends that a file calls and that the runtime here lacks; none without one."""
    from etx_schema.targets.target import device_target

    here = device_target()
    if here is None:
        return []
    used = {d.id or "" for plan in pte.program.execution_plan for d in plan.delegates}
    return sorted(used.difference(here.backends))


def _rows(problems: list[Problem]) -> list[dict[str, Any]]:
    return [problem.as_dict() for problem in problems]


def _print_check(
    file: str, invalid: list[Problem], missing: list[tuple[str, Any]], place: str
) -> None:
    if invalid or not missing:
        print(f"{file}: {_count(invalid)}")
        print(*report(invalid), sep="\n", end="\n" if invalid else "")
    for name, problems in missing:
        print(f"{file}: {_count(problems)} on target {name!r}{place}")
        print(*report(problems), sep="\n", end="\n" if problems else "")


def _count(problems: list[Problem]) -> str:
    number = len(grouped(problems))
    return {0: "no problems", 1: "1 problem"}.get(number, f"{number} problems")


def _targets(options: argparse.Namespace) -> None:
    from etx_schema.targets.target import CARRIED, GROUP

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
    from etx_schema.targets.target import CARRIED, GROUP, Target

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
    from etx_schema.targets.takes import spelled

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


def _memory(options: argparse.Namespace) -> None:
    from etx_schema.inspect.memory import memory_of
    from etx_schema.inspect.memory_report import check_output, document, lines, write_report
    from etx_schema.pte_reader import read_pte

    if options.output is not None:
        check_output(options.output)
    try:
        methods = memory_of(read_pte(options.file))
    except ProgramError as error:
        raise EtxError(f"{options.file}: {error}") from error
    name = Path(options.file).name
    if options.output is not None:
        write_report(options.output, methods, name)
    elif options.json:
        print(json.dumps(document(methods, name), indent=1))
    else:
        print(*lines(methods, name), sep="\n")


def _strip(options: argparse.Namespace) -> None:
    from etx_schema.strip import strip_file

    before = Path(options.file).stat().st_size if os.path.isfile(options.file) else 0
    strip_file(options.file, options.output)
    output = Path(options.output)
    if is_stream(output):
        print(f"{output}: written", file=sys.stderr)
        return
    after = output.stat().st_size
    print(f"{output}: {after:,} bytes, {before - after:,} fewer")
