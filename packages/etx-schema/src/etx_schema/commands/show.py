# SPDX-License-Identifier: BSD-3-Clause
"""`etx show`: print what is in a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from etx_schema.errors import EtxError, ProgramError
from etx_schema.files import load_bytes


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "show",
        help="print what is in a .pte, .ptd or .bpte file",
        description="Print methods, inputs, outputs, one line an instruction, constants, "
        "delegates, arenas and segments.",
        epilog="example: etx show model.pte | less",
    )
    parser.add_argument("file", help="a .pte, .ptd or .bpte file")
    parser.add_argument(
        "--debug",
        action="store_true",
        help="print what each instruction was before lowering",
    )
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="print which installed kernel each instruction takes, and what its row is special to",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from etx_schema.bundle import is_bundle
    from etx_schema.inspect.describe import describe_bundle, describe_ptd, describe_pte
    from etx_schema.inspect.show import lines
    from etx_schema.ptd import read_ptd, read_ptd_root

    view = load_bytes(options.file)
    try:
        kind = bytes(view[4:8])
        if kind == b"FT01":
            document = describe_ptd(read_ptd(view), read_ptd_root(view)[1])
        elif kind == b"ET12":
            document = describe_pte(view)
        elif is_bundle(view):
            document = describe_bundle(view)
        else:
            place = 4 if len(view) >= 8 else 0
            raise ProgramError("neither a .pte, nor a .ptd, nor a .bpte file", place)
    except ProgramError as error:
        raise EtxError(f"{options.file}: {error}") from error
    if options.kernels:
        _add_kernels(options.file, document)
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        _print(lines(options.file, document, debug=options.debug))


def _add_kernels(path: str, document: dict[str, Any]) -> None:
    """Note at each instruction what runs it, as the installed runtime says."""
    from etx_schema.entry_points import contributions, use

    if "methods" not in document:
        raise EtxError(f"{path}: --kernels is for .pte files, which have instructions")
    [*found] = contributions("etx.kernel_rows")
    if not found:
        raise EtxError("--kernels needs a runtime: install etx-runtime and etx-kernels-portable")
    taken: dict[str, list[str]] = use(found[0], path)
    for method in document["methods"]:
        for row in method["instructions"]:
            if kernel := taken[method["name"]][row["index"]]:
                row["kernel"] = kernel


def _print(rows: Iterable[str]) -> None:
    """Print lines; with rich on a terminal, headings stand out and origins step back."""
    console: Any = None
    if sys.stdout is not None and sys.stdout.isatty():
        try:
            from rich.console import Console

            console = Console(highlight=False, markup=False, soft_wrap=True)
        except ImportError:
            pass
    for row in rows:
        if console is None:
            print(row)
            continue
        text, mark, origin = row.partition("  # ")
        console.print(text, style="bold" if row[:1].strip() else None, end="")
        console.print(mark + origin, style="dim")
