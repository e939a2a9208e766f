#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/xnnpack-operators.md: what is lowered to XNNPACK, and under which conditions.

With --check, nothing is written: exit 1 if the page is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from etx_backend_xnnpack.costs import figures
from etx_backend_xnnpack.nodes import TABLE, Lowering, Work

from generated import write_or_check

PAGE = Path(__file__).resolve().parents[3] / "docs" / "xnnpack-operators.md"
HEAD = """# What is lowered to XNNPACK

Operators that `XnnpackPartitioner` takes: the table `etx_backend_xnnpack.nodes.TABLE`, written by
`python3 noxfile.py -t gen`. All take float32 and float16 of at most six dimensions with elements.
**heavy** ones make a delegate, which others join; what finds none stays with ETX's kernels. *int8*:
computes in int8 between dequantize and quantize nodes; *rows*: also with rows or images of its
argument quantized at run time, and weights of int8 (`linear` of int4, too); *wide*: computes in
float32 between what is float16, as layers with int8 or int4 weights do; others compute in float16,
with float32 weights where they are convolutions. `etx compile --backend xnnpack --explain` says of
each node that stays out which condition it breaks.

A part stays out, too, where XNNPACK takes more than three times what ETX's own kernels do, the
way there and back included: `XnnpackPartitioner(heavy_only=False)` takes it nevertheless. What both
take was
measured in turns on one thread of one machine by `packages/etx-backend-xnnpack/tools/measure.py
FOLDER --write`: picoseconds of a product in heavy operators, of an element in others.

{figures}
Caches that a step of a language model writes by `index_put` are read as they were, beside what is
put there, and written behind the delegate: a step of a known number of tokens is one.
No node is split, however large its weights are. Those that the L2 cache of a core does not hold are
read in panels that it does hold, each of them for all rows: `weight_panels=False` in the options of
a load reads them as XNNPACK does. `packages/etx-backend-xnnpack/tools/panels.py` measured 1.42 to
1.62 times the speed with 128 rows in float32 and 1.23 to 1.60 times in convolutions, 0.93 to 1.10
times with rows in int8, and the same with one row, which is left as it was: one thread of an Intel
Xeon with AVX-512 and 2 MB of L2 cache that was busy with other work.
XNNPACK has no bool and no
integers to compute with: masks given as bool are made numbers by ETX's kernels before it, once.

| operators | | conditions | nodes |
| --- | --- | --- | --- |
"""


def measured() -> str:
    """Return the table of what was measured."""
    found = figures()
    lines = [
        f"On {found['machine']}: a call {found['call']} ns; an element of an image that changes "
        f"places {found['transpose']:.0f} ps.\n",
        "| kind | numbers | ETX's own | XNNPACK |",
        "| --- | --- | ---: | ---: |",
    ]
    for numbers, kinds in found["speeds"].items():
        for kind, row in kinds.items():
            lines.append(f"| {kind} | {numbers} | {row['own']:.0f} | {row['xnnpack']:.0f} |")
    return "\n".join(lines) + "\n"


def condition(check: object) -> str:
    """Return what a check requires."""
    text = (check.__doc__ or "").strip().split("\n")[0]
    return text.removeprefix("Require ").removeprefix("that ").removesuffix(".").replace("|", "\\|")


def row(operators: list[str], lowering: Lowering) -> str:
    """Return a line of the table."""
    facts = ["**heavy**"] if lowering.work is Work.HEAVY else []
    facts += ["int8"] if lowering.int8 else []
    facts += ["rows"] if lowering.dynamic else []
    facts += ["wide"] if lowering.wide else []
    names = "<br>".join(f"`{name}`" for name in operators)
    conditions = "; ".join(condition(check) for check in lowering.checks)
    first = (lowering.emit.__doc__ or "").strip().split("\n")[0] if is_function(lowering) else ""
    note = lowering.note or first.removeprefix("Emit ").removesuffix(".")
    return f"| {names} | {', '.join(facts)} | {conditions} | {note} |\n"


def is_function(lowering: Lowering) -> bool:
    """Tell whether an emission has a text of its own."""
    return hasattr(lowering.emit, "__name__")


def page() -> str:
    """Return the page; operators that are emitted alike share a line."""
    groups: dict[object, list[str]] = {}
    rows: dict[object, Lowering] = {}
    for target, lowering in TABLE.items():
        facts = (lowering.checks, lowering.work, lowering.int8, lowering.wide, lowering.note)
        key = (lowering.emit, facts) if is_function(lowering) else facts
        groups.setdefault(key, []).append(str(target).removesuffix(".default"))
        rows[key] = lowering
    return HEAD.replace("{figures}", measured()) + "".join(
        row(names, rows[key]) for key, names in groups.items()
    )


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, {PAGE: page()}))
