# SPDX-License-Identifier: BSD-3-Clause
"""`etx memory`: print or draw the planned memory of a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from etx_schema.errors import EtxError, ProgramError
from etx_schema.outputs import OutputFile

GIVEN = {
    "board": "FILE",
    "sources": "DIR",
    "temp": "BYTES",
    "stack": "BYTES",
    "model-at": "ADDRESS",
}
"""Options that are of a target."""


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "memory",
        help="print or draw the planned memory of a .pte file",
        description="Recompute from the instructions which bytes of each arena are live when. "
        "With --target, of etx-backend-arm: what a microcontroller needs of RAM, in arenas, "
        "temporary memory, stack, and flash, before anything runs; several files are one image.",
        epilog="example: etx memory model.pte --target cortex-m4",
    )
    parser.add_argument("files", nargs="+", metavar="file", help="a .pte file")
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile,
        metavar="FILE",
        help="write a picture (.svg), text (.txt) or .json",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--target", metavar="CPU[+NPU]", help="as of etx firmware")
    for name, metavar in GIVEN.items():
        parser.add_argument(f"--{name}", metavar=metavar, help="with --target: as of etx firmware")
    parser.add_argument(
        "--method", action="append", metavar="NAME", help="with --target: one of several"
    )
    parser.add_argument(
        "--share-arenas", action="store_true", help="with --target: as of etx firmware"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.target is not None:
        _print_target(options)
        return
    for flag in (*GIVEN, "method", "share-arenas"):
        if _given(options, flag) not in (None, False):
            raise EtxError(f"--{flag} is of a target: add --target, such as --target cortex-m4")
    if len(options.files) > 1:
        raise EtxError("several files are one image of a target: add --target, or give one file")
    (file,) = options.files
    from etx_schema.inspect.memory import memory_of
    from etx_schema.inspect.memory_report import check_output, document, lines, write_report
    from etx_schema.pte_reader import read_pte

    if options.output is not None:
        check_output(options.output)
    try:
        methods = memory_of(read_pte(file))
    except ProgramError as error:
        raise EtxError(f"{file}: {error}") from error
    name = Path(file).name
    if options.output is not None:
        write_report(options.output, methods, name)
    elif options.json:
        print(json.dumps(document(methods, name), indent=1))
    else:
        print(*lines(methods, name), sep="\n")


def _given(options: argparse.Namespace, flag: str) -> Any:
    return getattr(options, flag.replace("-", "_"))


def _print_target(options: argparse.Namespace) -> None:
    """Print what the methods need on a microcontroller."""
    from etx_schema.entry_points import contributions

    if options.output is not None:
        raise EtxError("-o draws arenas, and --target prints numbers: give one of them")
    providers = contributions("etx.memory")
    if not providers:
        raise EtxError("--target needs etx-backend-arm: pip install 'etx-backend-arm[firmware]'")
    try:
        needs_of = providers[0].load()
    except Exception as error:
        raise EtxError(f"--target: {providers[0].value} cannot be loaded: {error}") from error
    words = ["--target", options.target, *(["--share-arenas"] if options.share_arenas else [])]
    for flag in GIVEN:
        if (value := _given(options, flag)) is not None:
            words.append(f"--{flag}={value}")
    words += [f"--method={name}" for name in options.method or ()]
    needs = needs_of(options.files, words)
    if options.json:
        print(json.dumps({"target": options.target, **needs.document()}))
        return
    print(f"{', '.join(options.files)} on {options.target}\n{needs.table()}", end="")
