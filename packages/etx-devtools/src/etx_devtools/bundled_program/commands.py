# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx bundle` and `etx verify`."""

from __future__ import annotations

import argparse
from typing import Any

from etx_schema.outputs import InPlaceFile, OutputFile

BUNDLE_EXAMPLES = """\
examples:
  etx bundle model.pte --inputs a.npz --inputs b.npz --eager net.py:Net -o model.bpte
  etx bundle model.pte --inputs x.npy --expect y.npy -o model.bpte
  etx bundle model.pte --eager net.py:Net -o model.bpte      the factory's example inputs

Each --inputs is a test case, or several: an .npz by the names of the inputs or arr_0, arr_1, as for
`etx run --input`. --expect, once for each --inputs, has the outputs so. Without --expect and
--eager `etx verify` only runs the cases. What does not fit the program is refused by name.
"""

VERIFY_EXAMPLES = """\
examples:
  etx verify model.bpte
  etx verify model.bpte --rtol 1e-3 --atol 1=1e-2     of all outputs, and of output 1
  etx verify model.bpte --junit results.xml

Every case begins with the initial values of buffers. Exit code 1 when an output is not close.
"""


def register_bundle(subparsers: Any) -> None:
    """Add `etx bundle`."""
    parser = subparsers.add_parser(
        "bundle",
        help="put test cases and a .pte into one file",
        description="Write a bundled program: a .pte with inputs and the outputs they should give.",
        epilog=BUNDLE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a .pte file, or a .bpte, whose cases are kept")
    parser.add_argument(
        "-o",
        "--output",
        type=InPlaceFile,
        metavar="FILE",
        required=True,
        help="the .bpte to write",
    )
    parser.add_argument(
        "--inputs",
        action="append",
        default=[],
        metavar="FILE",
        help=".npz, or .npy for one input; once for each test case or more",
    )
    given = parser.add_mutually_exclusive_group()
    given.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="FILE",
        help=".npz, or .npy for one output; once for each test case",
    )
    given.add_argument(
        "--eager", metavar="MODULE:FACTORY", help="what this model returns is expected"
    )
    parser.add_argument("--method", metavar="NAME", help="default: forward, or the only one")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_bundle)


def register_verify(subparsers: Any) -> None:
    """Add `etx verify`."""
    parser = subparsers.add_parser(
        "verify",
        help="run the test cases of a bundled program",
        description="Run the test cases of a .bpte and say how far each output is from the "
        "expected one.",
        epilog=VERIFY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a .bpte file")
    parser.add_argument("--method", metavar="NAME", help="only the cases of this method")
    parser.add_argument("--case", type=int, metavar="N", help="only this case, from 0")
    for name, word in (("--atol", "absolute"), ("--rtol", "relative to the expected value")):
        parser.add_argument(
            name,
            action="append",
            default=[],
            type=_tolerance,
            metavar="[OUTPUT=]X",
            help=f"allowed difference, {word} (default: 1e-5)",
        )
    parser.add_argument(
        "--data", action="append", default=[], metavar="FILE", help="a .ptd file with weights"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--junit", type=OutputFile, metavar="FILE", help="write the results as JUnit's XML"
    )
    parser.set_defaults(run=_verify)


def _tolerance(text: str) -> tuple[int | None, float]:
    output, mark, number = text.rpartition("=")
    try:
        found = (int(output) if mark else None, float(number))
    except ValueError:
        found = (None, -1.0)
    if not 0 <= found[1] < float("inf") or (found[0] or 0) < 0:
        raise argparse.ArgumentTypeError(f"expected X or OUTPUT=X with X from 0, got '{text}'")
    return found


def _bundle(options: argparse.Namespace) -> None:
    from etx_devtools.bundled_program.make import bundle

    bundle(options)


def _verify(options: argparse.Namespace) -> int:
    from etx_devtools.bundled_program.report import report

    return report(options)
