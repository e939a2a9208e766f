# SPDX-License-Identifier: BSD-3-Clause
"""Print a profile as a table that fits the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from etx_devtools.profile.views import Line


def time_text(milliseconds: float) -> str:
    """Format with three digits and the unit that suits."""
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if milliseconds * scale >= 1:
            number = f"{milliseconds * scale:.3g}"
            return f"{float(number):.0f} {unit}" if "e" in number else f"{number} {unit}"
    return f"{milliseconds * 1e6:.0f} ns"


def print_lines(found: Sequence[Line], view: str) -> None:
    """Print the lines, as wide as the terminal at most; rich draws them where it is installed."""
    columns = {
        "operator": ("time", "share", "calls"),
        "line": ("time", "share", "calls"),
        "module": ("time", "share", "own", "calls"),
        "instruction": ("p10", "time", "p90", "share", "shape", "module", "line"),
    }[view]
    rows = [[_name(line), *(_cell(line, column) for column in columns)] for line in found]
    _draw([view, *columns], rows)


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
        "shape": line.shape,
        "module": line.module or "",
        "line": line.source or "",
    }[column]


TEXT = ("shape", "module", "line")


def _draw(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = shutil.get_terminal_size((100, 24)).columns
    texts = [0, *(index for index, name in enumerate(headings) if name in TEXT)]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(texts, key=lambda index: widths[index])
        if widths[widest] <= 8:
            break
        widths[widest] -= 1
    table = [headings, *rows]
    cut = [[_fit(c, w) for c, w in zip(row, widths, strict=True)] for row in table]
    if sys.stdout.isatty() and _draw_rich(cut, texts):
        return
    for row in cut:
        cells = [
            cell.ljust(size) if index in texts else cell.rjust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _draw_rich(table: Sequence[Sequence[str]], texts: Sequence[int]) -> bool:
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        return False
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for index, heading in enumerate(table[0]):
        drawn.add_column(heading, justify="left" if index in texts else "right", no_wrap=True)
    for row in table[1:]:
        drawn.add_row(*row)
    Console(highlight=False, markup=False).print(drawn)
    return True
