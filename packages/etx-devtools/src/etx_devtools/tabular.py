# SPDX-License-Identifier: BSD-3-Clause
"""Tables that fit the terminal; rich draws them where it is installed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Sequence
from typing import IO

LEAST = 6


def draw(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    texts: Collection[int],
    file: IO[str] | None = None,
) -> None:
    """Print rows; the columns `texts` are flush left and cut where the table is too wide."""
    file = sys.stdout if file is None else file
    width = shutil.get_terminal_size((100, 24)).columns
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max((i for i in texts if i < len(widths)), key=lambda index: widths[index])
        if widths[widest] <= LEAST:
            break
        widths[widest] -= 1
    table = [
        [_fit(cell, size) for cell, size in zip(row, widths, strict=True)]
        for row in (headings, *rows)
    ]
    if file.isatty() and _draw_rich(table, texts, file):
        return
    for row in table:
        cells = [
            cell.ljust(size) if index in texts else cell.rjust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip(), file=file)


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _draw_rich(table: Sequence[Sequence[str]], texts: Collection[int], file: IO[str]) -> bool:
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
    Console(file=file, highlight=False, markup=False).print(drawn)
    return True
