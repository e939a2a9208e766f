# SPDX-License-Identifier: BSD-3-Clause
"""`etx check`: compare a file with what is installed, or with targets."""

from __future__ import annotations

import argparse
import json
from typing import Any

from etx_schema.commands.versions import Version
from etx_schema.entry_points import contributions
from etx_schema.errors import EtxError, ProgramError
from etx_schema.problem import Problem, grouped, report


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "check",
        help="verify a .pte file and compare it with what is installed, or with targets",
        description="Verify a program and list everything in it that each target lacks: where, "
        "how often, and what to do. Without --target it is compared with what is installed here. "
        "Exit code 1 if anything is wrong or missing.",
        epilog="example: etx check model.pte --target executorch --target board.json",
    )
    parser.add_argument("file", help="a .pte file")
    parser.add_argument(
        "--target",
        metavar="NAME|FILE",
        action="append",
        default=[],
        help="an installed target, a .json file, or a+b for both together; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--version", action=Version, nargs=0, help="list what is installed")
    parser.set_defaults(run=_run)


RUNTIME = "etx.abi"


def _run(options: argparse.Namespace) -> int:
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
    from etx_schema.targets.installed import DEFAULT, target_paths
    from etx_schema.targets.target import Target, device_target

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
