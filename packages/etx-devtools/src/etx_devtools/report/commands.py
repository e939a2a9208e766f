# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx report`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from etx_schema import EtxError
from etx_schema.outputs import OutputFile

from etx_devtools.compare.command import add_quantization, quantization

if TYPE_CHECKING:
    from etx_schema import PteFile

EPILOG = """\
examples:
  etx report model.pte -o report.html
  etx report model.pte --run -o report.html      also measure each instruction here
  etx report model.pte --eager net.py:Net -o report.html     also errors by instruction
  etx report before.pte after.pte --run -o report.html       what changed, panel by panel
  etx report model.pte --etdump run.etdp -o report.html      times that a device recorded
  etx report model.pte -o report.html --netron model.netron.pte     a copy for Netron

The file needs no server and no network. report.html#forward/12 shows instruction 12.
"""


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "report",
        help="write an HTML page of a .pte file, or of two",
        description="Write one HTML file to look at a program: graph by module, instructions, "
        "source lines, timeline, memory, size, delegation, stages of the compiler. Of two files "
        "it shows the second, next to what it was in the first.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .pte or .bpte file, or two")
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile,
        metavar="FILE",
        required=True,
        help="the .html to write",
    )
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        "--run", dest="runs", action="store_true", help="measure each instruction, random inputs"
    )
    times.add_argument(
        "--etdump", action="append", metavar="FILE", help="take times from this recording"
    )
    parser.add_argument(
        "--eager", metavar="MODULE:FACTORY", help="compare values with this model, as etx compare"
    )
    parser.add_argument(
        "--inputs", action="append", default=[], metavar="FILE", help="of --run and --eager"
    )
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="of --etdump (default: forward, or the only one) and --eager (default: all)",
    )
    add_quantization(parser)
    parser.add_argument(
        "--stages",
        action="append",
        metavar="FILE",
        help="what etx compile --stages wrote (default: MODEL.pte.stages.json where it is)",
    )
    parser.add_argument(
        "--overlay",
        type=OutputFile,
        metavar="FILE",
        help="also write times, or errors, as model-explorer node data",
    )
    parser.add_argument(
        "--netron",
        type=OutputFile,
        metavar="FILE",
        help="also write a copy of the program that Netron opens: to look at, not to run",
    )
    parser.add_argument(
        "--json", action="store_true", help="print what the page shows as one JSON document"
    )
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> None:
    from etx_schema.errors import naming
    from etx_schema.files import write_atomically

    from etx_devtools.report.page import page

    for word in ("etdump", "stages"):
        given = getattr(options, word) or []
        if given and len(given) != len(options.files):
            raise EtxError(f"--{word} {len(given)} times for {len(options.files)} files")
    if options.method is not None and not (options.etdump or options.eager):
        raise EtxError("--method goes with --etdump or --eager")
    if options.inputs and not (options.runs or options.eager):
        raise EtxError("--inputs goes with --run or --eager")
    if len(options.files) > 2:
        raise EtxError(f"expected one file or two, got {len(options.files)}")
    documents = []
    for place, path in enumerate(options.files):
        with naming(path):
            documents.append(_document(options, place))
    found = documents[0]
    if len(documents) == 2:
        from etx_devtools.report.both import compared

        (one, other), names = documents, options.files
        found = compared((names[0], one), (names[1], other))
    text = page(found)
    if options.overlay is not None:
        from etx_devtools.report.overlay import overlay

        nodes = overlay(options.files[-1], documents[-1])
    drawn = _for_netron(options.files[-1]) if options.netron is not None else None
    write_atomically(options.output, [text.encode()])
    if options.overlay is not None:
        write_atomically(options.overlay, [json.dumps(nodes, indent=1).encode()])
    if drawn is not None:
        from etx_schema import write_pte

        write_pte(drawn, options.netron)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.output}: {len(text.encode()):,} bytes")


def _for_netron(path: str) -> PteFile:
    from etx_devtools.report.netron import netron_copy

    drawn, refused = netron_copy(path)
    if refused:
        names = ", ".join(refused)
        print(f"etx: Netron has no schema of {names}, and refuses the copy", file=sys.stderr)
    return drawn


def _document(options: argparse.Namespace, place: int) -> dict[str, Any]:
    """Return the document of one of the files."""
    from etx_devtools.report.data import document

    path = options.files[place]
    measured: dict[str, list[float]] | None = None
    said: list[str] = []
    if options.runs:
        from etx_devtools.report.measure import measure

        measured = measure(path, options.inputs)
    elif options.etdump:
        from etx_devtools.report.measure import recorded

        measured, said = recorded(path, options.etdump[place], options.method)
    errors = None
    if options.eager:
        from etx_devtools.report.errors import errors_of

        quantized = quantization(options)
        errors = errors_of(path, options.eager, options.inputs, options.method, quantized)
    found = document(path, measured, errors, _log(path, options.stages, place))
    found["advice"] = [*said, *found["advice"]]
    return found


def _log(path: str, given: list[str] | None, place: int) -> Any:
    """Return the log that was given, or lies beside the file and is of it."""
    from etx_schema import program_of
    from etx_schema.files import load_bytes

    from etx_devtools.report.stages import beside, read_log

    name = given[place] if given else beside(path)
    if name is None:
        return None
    try:
        return read_log(name, program_of(load_bytes(path)))
    except EtxError as error:
        if given:
            raise
        print(f"etx: {error}; it is left out", file=sys.stderr)
        return None
