# SPDX-License-Identifier: BSD-3-Clause
"""`etx strip`: remove debug information from a file."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from etx_schema.files import is_stream
from etx_schema.outputs import InPlaceFile


def register(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "strip",
        help="remove debug information from a .pte file",
        description="Write a .pte file without the source lines of its instructions (the named "
        "data etx/debug) and without stack traces. Calls give the same results.",
        epilog="example: etx strip model.pte -o small.pte",
    )
    parser.add_argument("file", help="a .pte file")
    parser.add_argument(
        "-o",
        "--output",
        type=InPlaceFile,
        metavar="FILE",
        required=True,
        help="the .pte to write",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from etx_schema.strip import strip_file

    before = Path(options.file).stat().st_size if os.path.isfile(options.file) else 0
    strip_file(options.file, options.output)
    output = Path(options.output)
    if is_stream(output):
        print(f"{output}: written", file=sys.stderr)
        return
    after = output.stat().st_size
    print(f"{output}: {after:,} bytes, {before - after:,} fewer")
