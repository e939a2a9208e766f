# SPDX-License-Identifier: BSD-3-Clause
"""The command `etx diff`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etx_devtools.diff.changes import Difference, MethodDifference

EXAMPLES = """\
examples:
  etx diff old.pte new.pte
  etx diff old.pte new.pte --run                             also times and outputs
  etx diff old.pte new.pte --fail-if 'arena>+2%' --fail-if 'size>+1%'

Instructions are paired by where they come from, not by their places. --fail-if NAME>+X% or NAME>+X
limits growth, NAME>X the value; NAME is arena, size, weights (bytes), instructions, or, with --run,
time (milliseconds), error. Exit code 1 when a limit is exceeded.
"""
SHOWN = 40


def register(subparsers: Any) -> None:
    """Add the command to `etx`."""
    parser = subparsers.add_parser(
        "diff",
        help="say what changed from one .pte file to another",
        description="Compare two .pte or .bpte files: instructions, weights, operators, delegates, "
        "arenas, size.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", help="a .pte file")
    parser.add_argument("after", help="the .pte file that it became")
    parser.add_argument("--run", dest="runs", action="store_true", help="run both, in turns")
    parser.add_argument(
        "--method", metavar="NAME", help="of --run (default: forward or the only one)"
    )
    parser.add_argument(
        "--fail-if", action="append", default=[], metavar="LIMIT", help="such as 'arena>+2%%'"
    )
    parser.add_argument("--all", action="store_true", help=f"print more than {SHOWN} changes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_diff)


def _diff(options: argparse.Namespace) -> int:
    from etx_devtools.diff.changes import diff
    from etx_devtools.diff.limits import exceeded, parse

    for limit in options.fail_if:
        parse(limit)
    found = diff(options.before, options.after)
    if options.runs:
        from etx_devtools.diff.run import run_both

        found.run = run_both((options.before, options.after), options.method)
    broken = [text for text in (exceeded(limit, found) for limit in options.fail_if) if text]
    if options.json:
        print(json.dumps(found.as_dict() | {"exceeded": broken}, indent=1))
    else:
        for line in lines(found, None if options.all else SHOWN):
            print(line)
        for text in broken:
            print(f"too much: {text}")
    return 1 if broken else 0


def lines(found: Difference, most: int | None = None) -> Iterator[str]:
    """Yield the lines of a report; `most` limits the changes of each kind."""
    yield f"{found.files[0]} -> {found.files[1]}"
    yield f"size: {_step(*found.sizes)} bytes; weights {_step(*found.weight_bytes)} bytes"
    for word, names in (("removed", found.only_before), ("added", found.only_after)):
        yield from (f"method {name}: {word}" for name in names)
    for word, table in (("operators", found.operators), ("delegates", found.delegates)):
        if table:
            counts = (f"{name} {before} -> {after}" for name, (before, after) in table.items())
            yield f"{word}: {', '.join(counts)}"
    yield from (f"named data {text}" for text in found.named_data)
    for method in found.methods:
        yield from _method(method, most)
    if found.run is not None:
        before, after = found.run["milliseconds"]
        yield f"time: {before:.4g} -> {after:.4g} ms ({_percent(before, after)})"
        for index, off in enumerate(found.run["outputs"]):
            shown = "cannot be compared" if off is None else f"differs by {off:.3g}"
            yield f"output {index}: {shown}"
    if found.is_empty:
        yield "the programs are the same"


def _method(method: MethodDifference, most: int | None) -> Iterator[str]:
    yield f"method {method.name}: {_step(*method.instructions)} instructions"
    arenas = [sum(side) for side in method.arenas]
    if method.arenas[0] != method.arenas[1]:
        yield f"  arena: {_step(arenas[0], arenas[1])} bytes"
    yield from (f"  {text}" for text in method.signature)
    for kind in dict.fromkeys(change.kind for change in method.changes):
        texts = [f"{kind}: {change.text}" for change in method.changes if change.kind == kind]
        yield from _some(texts, most)
    weights = []
    for weight in method.weights:
        types = weight.before
        if weight.after and weight.after != weight.before:
            types = f"{weight.before} -> {weight.after}" if weight.before else weight.after
        off = "" if weight.largest is None else f", largest difference {weight.largest:.3g}"
        weights.append(f"weight {weight.name}: {weight.change}, {types}{off}")
    yield from _some(weights, most)
    if method.weights:
        yield f"  {method.equal_weights} weights are equal"


def _some(rows: list[str], most: int | None) -> Iterator[str]:
    yield from (f"  {row}" for row in rows[:most])
    if most is not None and len(rows) > most:
        yield f"  and {len(rows) - most} more (--all)"


def _step(before: int, after: int) -> str:
    if before == after:
        return f"{before:,}"
    return f"{before:,} -> {after:,} ({_percent(before, after)})"


def _percent(before: float, after: float) -> str:
    return f"{100 * (after - before) / before:+.1f} %" if before else "new"
