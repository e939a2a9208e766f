# SPDX-License-Identifier: BSD-3-Clause
"""`etx memory`: print or draw the planned memory of a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from etx_schema.errors import EtxError, ProgramError


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "memory",
        help="print or draw the planned memory of a .pte file",
        description="Recompute from the instructions which bytes of each arena are live when.",
        epilog="example: etx memory model.pte -o model.svg",
    )
    parser.add_argument("file", help="a .pte file")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write a picture (.svg), text (.txt) or .json"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
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
