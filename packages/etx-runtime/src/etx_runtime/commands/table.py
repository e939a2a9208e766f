# SPDX-License-Identifier: BSD-3-Clause
"""Tables and colours on a terminal; plain aligned text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

Row = Sequence[str]


def print_table(headings: Row, rows: Sequence[Row], left: int = 1) -> None:
    """Print rows in columns, the first `left` of them flush left; rich draws them if installed."""
    console = _console()
    if console is None:
        for line in align([headings, *rows] if any(headings) else rows, left):
            print(line)
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_header=any(headings), pad_edge=False)
    for index, heading in enumerate(headings):
        is_name = index < left
        style = "bold" if is_name else "cyan"
        table.add_column(heading, justify="left" if is_name else "right", style=style)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def align(rows: Sequence[Row], left: int = 1) -> list[str]:
    """Return lines in which the cells of a column end, or begin, at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _console() -> Any:
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False, markup=False)
