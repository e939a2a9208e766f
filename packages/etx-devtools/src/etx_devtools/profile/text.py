# SPDX-License-Identifier: BSD-3-Clause
"""Print a profile as a table that fits the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from etx_devtools.profile.views import Line
from etx_devtools.tabular import draw

INSTRUCTION = ("p10", "time", "p90", "share", "FLOP", "bytes", "GFLOP/s", "GB/s", "of peak")
WIDE = 150
LEFT_OUT = ("p10", "FLOP", "bytes", "line")
"""What narrower terminals have no room for; `--json` has all."""
TEXT = ("shape", "module", "line")


def time_text(milliseconds: float) -> str:
    """Format with three digits and the unit that suits."""
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if milliseconds * scale >= 1:
            number = f"{milliseconds * scale:.3g}"
            return f"{float(number):.0f} {unit}" if "e" in number else f"{number} {unit}"
    return f"{milliseconds * 1e6:.0f} ns"


def amount_text(number: int | None) -> str:
    """Format a count with three digits and k, M or G; nothing for None."""
    if number is None:
        return ""
    for unit, scale in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= scale:
            return f"{number / scale:.3g}{unit}"
    return str(number)


def print_lines(found: Sequence[Line], view: str) -> None:
    """Print the lines, as wide as the terminal at most; rich draws them where it is installed."""
    columns = {
        "operator": ("time", "share", "calls"),
        "line": ("time", "share", "calls"),
        "module": ("time", "share", "own", "calls"),
        "instruction": (*INSTRUCTION, "shape", "module", "line"),
    }[view]
    narrow = shutil.get_terminal_size((100, 24)).columns < WIDE
    left_out = LEFT_OUT if narrow and view == "instruction" else ()
    columns = tuple(
        name
        for name in columns
        if name not in left_out and any(_cell(line, name) for line in found)
    )
    rows = [[_name(line), *(_cell(line, column) for column in columns)] for line in found]
    texts = [0, *(i for i, name in enumerate([view, *columns]) if name in TEXT)]
    draw([view, *columns], rows, texts)


def _name(line: Line) -> str:
    return "  " * line.depth + line.name


def _cell(line: Line, column: str) -> str:
    own = "" if line.own_ms is None else time_text(line.own_ms)
    return {
        "time": time_text(line.ms),
        "share": f"{100 * line.share:.1f} %",
        "calls": str(line.calls),
        "own": own,
        "p10": time_text(line.p10_ms),
        "p90": time_text(line.p90_ms),
        "FLOP": amount_text(line.flop),
        "bytes": amount_text(line.bytes),
        "GFLOP/s": "" if line.gflop_s is None else f"{line.gflop_s:.3g}",
        "GB/s": "" if line.gb_s is None else f"{line.gb_s:.3g}",
        "of peak": "" if line.of_peak is None else f"{100 * line.of_peak:.0f} %",
        "shape": line.shape,
        "module": line.module or "",
        "line": line.source or "",
    }[column]
