# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx size`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from etx_devtools.size import VIEWS, sizes


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "size",
        help="print where the bytes of a .pte or .bpte file are",
        description="Account for every byte of a program, by operator, weight or module.",
        epilog="example: etx size model.pte --by weight | head",
    )
    parser.add_argument("file", help="a .pte or .bpte file")
    parser.add_argument("--by", choices=VIEWS, default="operator", help="default: operator")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_size)


def _size(options: argparse.Namespace) -> None:
    report = sizes(options.file)
    rows = report.by(options.by)
    if options.json:
        document = {"file": options.file, "bytes": report.file_size, "by": options.by}
        print(json.dumps(document | {"rows": [vars(row) for row in rows]}, indent=1))
        return
    width = len(f"{report.file_size:,}")
    for row in rows:
        share = 100 * row.bytes / report.file_size
        print(f"{row.bytes:>{width},}  {share:5.1f} %  {row.name}")
    print(f"{report.file_size:>{width},}  100.0 %  {options.file}")
