# SPDX-License-Identifier: BSD-3-Clause
"""Draw planned memory: bytes over instructions, one panel an arena, as an SVG."""

from __future__ import annotations

from collections.abc import Sequence

from etx_schema.inspect import svg
from etx_schema.inspect.arenas import MethodMemory, Names
from etx_schema.inspect.memory_labels import kind_of, short_name
from etx_schema.inspect.memory_panel import LEFT, WIDTH, Panel

PALETTE = (
    "#8fb8de", "#f2b880", "#9ccb9a", "#d9a7c7", "#b7a6d9",
    "#e6d37a", "#8ccfc9", "#e49a92", "#b5bd7c", "#c7b299",
)  # fmt: skip


def picture(methods: Sequence[MethodMemory], title: str, names: Names) -> str:
    """Return the picture of all arenas; rectangles carry what they are as a tooltip."""
    parts: list[str] = []
    top = 44.0
    colours = _colours(methods)
    parts.append(svg.text(LEFT, 27, f"{title}: planned memory", size=17, weight="600"))
    for method in methods:
        for arena in method.arenas:
            if not arena.allocations:
                continue
            bank, capacity = names.get((method.method, arena.memory_id), ("", None))
            panel = Panel(method, arena, colours, bank, capacity, top)
            parts += panel.draw()
            top = panel.bottom
    height = top + 6
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}"'
            f' viewBox="0 0 {WIDTH} {height:.0f}" font-family="Helvetica, Arial, sans-serif">',
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _colours(methods: Sequence[MethodMemory]) -> dict[str, str]:
    """Give the operators that take the most bytes for the longest a colour each."""
    area: dict[str, int] = {}
    for each in (t for method in methods for arena in method.arenas for t in arena.allocations):
        if not kind_of(each):
            size = (each.end - each.start) * (each.last - each.first + 1)
            area[short_name(each.op)] = area.get(short_name(each.op), 0) + size
    ranked = sorted(area, key=lambda name: (-area[name], name))[: len(PALETTE)]
    return dict(zip(ranked, PALETTE, strict=False))
