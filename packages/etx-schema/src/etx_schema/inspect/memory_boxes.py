# SPDX-License-Identifier: BSD-3-Clause
"""Draw one allocation: a rectangle over bytes and steps with its name."""

from __future__ import annotations

from html import escape

from etx_schema.inspect import svg
from etx_schema.inspect.arenas import Allocation
from etx_schema.inspect.memory_labels import bytes_text, kind_of, label_of

Corners = tuple[float, float, float, float]
"""Left, top, width and height."""


def box(corners: Corners, allocation: Allocation, colour: str, steps: int) -> str:
    """Return the rectangle of an allocation; what it is appears as a tooltip."""
    tip = f"<title>{escape(_tip(allocation, steps))}</title>"
    return svg.rect(*corners, colour, "#ffffff", tip)


def label(corners: Corners, allocation: Allocation) -> list[str]:
    """Return as many lines of text as there is room for in the rectangle."""
    x, y, wide, high = corners
    room = int((wide - 6) / svg.LETTER)
    name = label_of(allocation)
    if high < 13 or room < min(len(name), 6):
        return _upright(corners, allocation, name)
    colour = "#ffffff" if kind_of(allocation) else svg.INK
    rows = [name]
    if high >= 28 and allocation.module:
        rows.append(allocation.module)
    if high >= 43 or (high >= 28 and not allocation.module):
        shape = ", ".join(map(str, allocation.sizes))
        rows.append(f"{allocation.dtype}[{shape}]  {bytes_text(allocation.end - allocation.start)}")
    rows = [row for i, row in enumerate(rows) if i == 0 or len(row) <= room]
    middle = y + high / 2 - 7 * (len(rows) - 1) + 4
    parts = []
    for i, row in enumerate(rows):
        weight = "600" if i == 0 and len(rows) > 1 else ""
        text = svg.cut(row, room)
        place = (x + wide / 2, middle + 14 * i)
        parts.append(svg.text(*place, text, anchor="middle", colour=colour, weight=weight))
    return parts


def _upright(corners: Corners, allocation: Allocation, name: str) -> list[str]:
    """Label what is high and narrow from bottom to top, if there is room."""
    x, y, wide, high = corners
    room = int((high - 8) / svg.LETTER)
    if wide < 14 or room < len(name):
        return []
    longer = f"{name}, {allocation.module}" if allocation.module else name
    text = longer if len(longer) <= room else name
    colour = "#ffffff" if kind_of(allocation) else svg.INK
    across, down = x + wide / 2 + 4, y + high / 2
    return [svg.text(across, down, text, anchor="middle", colour=colour, turned=True)]


def _tip(allocation: Allocation, steps: int) -> str:
    rows = [
        f"{label_of(allocation)} ({allocation.name}, {allocation.kind})",
        f"{allocation.dtype}[{', '.join(map(str, allocation.sizes))}], {allocation.nbytes:,} bytes",
        f"bytes {allocation.start:,} to {allocation.end:,}",
        f"instructions {max(allocation.first - 1, 0)} to {min(allocation.last - 1, steps - 3)}",
    ]
    return "\n".join(rows + [part for part in (allocation.module, allocation.source) if part])
