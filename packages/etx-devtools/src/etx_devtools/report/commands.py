# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx report`."""

from __future__ import annotations

import argparse
from typing import Any

EPILOG = """\
examples:
  etx report model.pte -o report.html
  etx report model.pte --run -o report.html      also measure each instruction here
  etx report model.pte --eager net.py:Net -o report.html     also errors by instruction
  etx report model.pte --etdump run.etdp -o report.html      times that a device recorded

The file needs no server and no network. report.html#forward/12 shows instruction 12.
"""


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "report",
        help="write an HTML page of a .pte file",
        description="Write one HTML file to look at a program: graph by module, instructions, "
        "source lines, timeline, memory, size, delegation.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a .pte or .bpte file")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the .html to write")
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        "--run", dest="runs", action="store_true", help="measure each instruction, random inputs"
    )
    times.add_argument("--etdump", metavar="FILE", help="take times from this recording")
    parser.add_argument(
        "--eager", metavar="MODULE:FACTORY", help="compare values with this model, as etx compare"
    )
    parser.add_argument("--inputs", action="append", default=[], metavar="FILE", help="of --eager")
    parser.add_argument(
        "--method", default="forward", metavar="NAME", help="of --etdump and --eager"
    )
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    from etx_schema.files import write_atomically

    from etx_devtools.report.data import document
    from etx_devtools.report.page import page

    measured = None
    if options.runs:
        from etx_devtools.report.measure import measure

        measured = measure(options.file)
    elif options.etdump:
        from etx_devtools.report.measure import recorded

        measured = recorded(options.file, options.etdump, options.method)
    errors = None
    if options.eager:
        from etx_devtools.report.errors import errors_of

        errors = errors_of(options.file, options.eager, options.inputs, options.method)
    text = page(document(options.file, measured, errors))
    write_atomically(options.output, [text.encode()])
    print(f"{options.output}: {len(text.encode()):,} bytes")
