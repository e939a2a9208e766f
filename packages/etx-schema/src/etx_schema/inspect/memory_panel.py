# SPDX-License-Identifier: BSD-3-Clause
"""Draw one arena: a legend, rectangles, the bytes live at each step, the largest tensors."""

from __future__ import annotations

from collections.abc import Mapping

from etx_schema.inspect import svg
from etx_schema.inspect.arenas import Allocation, Arena, MethodMemory
from etx_schema.inspect.memory_boxes import box, label
from etx_schema.inspect.memory_labels import KINDS, bytes_text, kind_of, label_of, short_name

WIDTH, LEFT, RIGHT = 1240, 92, 24
PLOT, STRIP, GAP = 420, 64, 26
REST = "#cfd3d6"


class Panel:
    """One arena: a legend, rectangles, the peak, and the bytes that are live below."""

    def __init__(
        self,
        method: MethodMemory,
        arena: Arena,
        colours: Mapping[str, str],
        bank: str,
        capacity: int | None,
        top: float,
    ) -> None:
        self.method, self.arena, self.bank, self.capacity = method, arena, bank, capacity
        self.steps = len(arena.load)
        self.head = top + 22
        ops = {short_name(each.op) for each in arena.allocations if not kind_of(each)}
        self.colours = {op: colour for op, colour in colours.items() if op in ops}
        self.plot = self.head + 44
        self.strip = self.plot + PLOT + 30
        self.listing = self.strip + STRIP + 40
        self.there = arena.at(arena.fullest_step)[:8]
        self.bottom = self.listing + 17 * len(self.there) + GAP
        self.full = max(arena.size, capacity or 0 if (capacity or 0) < 4 * arena.size else 0, 1)

    def x(self, step: float) -> float:
        """Return where a step begins."""
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.steps

    def y(self, at: float) -> float:
        """Return where a byte lies."""
        return self.plot + PLOT * (1 - at / self.full)

    def draw(self) -> list[str]:
        """Return the shapes of the panel."""
        return [
            *self._header(),
            *self._axes(),
            *(
                box(self._corners(a), a, self._colour(a), self.steps)
                for a in self.arena.allocations
            ),
            *self._peak(),
            *(part for a in self.arena.allocations for part in label(self._corners(a), a)),
            *self._loads(),
            *self._list(),
        ]

    def _colour(self, allocation: Allocation) -> str:
        kind = kind_of(allocation)
        return KINDS[kind] if kind else self.colours.get(short_name(allocation.op), REST)

    def _header(self) -> list[str]:
        arena = self.arena
        name = f" ({self.bank})" if self.bank else ""
        of = f" of {bytes_text(self.capacity)}" if self.capacity is not None else ""
        text = (
            f"method {self.method.method}, memory {arena.memory_id}{name}:"
            f" peak {bytes_text(arena.size)}{of}"
        )
        rest = (
            f"largest live set {bytes_text(arena.largest_live_set)},"
            f" gap {100 * arena.gap:.1f} %, {len({t.value for t in arena.allocations})} tensors"
        )
        parts = [
            svg.text(LEFT, self.head, text, size=14, weight="600"),
            svg.text(WIDTH - RIGHT, self.head, rest, size=13, anchor="end"),
        ]
        x = float(LEFT)
        entries = [(n, c) for n, c in KINDS.items() if self._has_kind(n)]
        entries += list(self.colours.items())
        if any(self._colour(t) == REST for t in arena.allocations):
            entries.append(("others", REST))
        for name, colour in entries:
            name = svg.cut(name, 26)
            wide = 18 + svg.LETTER * len(name) + 12
            if x + wide > WIDTH - RIGHT:
                break
            parts.append(svg.rect(x, self.head + 12, 11, 11, colour))
            parts.append(svg.text(x + 16, self.head + 22, name))
            x += wide
        return parts

    def _has_kind(self, kind: str) -> bool:
        return any(kind_of(each) == kind for each in self.arena.allocations)

    def _axes(self) -> list[str]:
        right = WIDTH - RIGHT
        parts = [svg.rect(LEFT, self.plot, right - LEFT, PLOT, "#f6f7f8")]
        for at in svg.ticks(self.full, 7, binary=True):
            y = self.y(at)
            parts.append(svg.line(LEFT, y, right, y, "#e1e4e7"))
            parts.append(svg.text(LEFT - 8, y + 4, bytes_text(at), anchor="end", colour=svg.FAINT))
        if self.capacity is not None and self.capacity <= self.full:
            y = self.y(self.capacity)
            parts.append(svg.line(LEFT, y, right, y, svg.ALARM, dash="2 3"))
            text = f"capacity {bytes_text(self.capacity)}"
            parts.append(svg.text(right - 4, y - 4, text, anchor="end", colour=svg.ALARM))
        for number in svg.ticks(max(self.steps - 2, 1), 14):
            x = self.x(number + 1.5)
            if x < right - 10:
                parts.append(svg.line(x, self.plot + PLOT, x, self.plot + PLOT + 4, svg.FAINT))
                y = self.plot + PLOT + 16
                parts.append(svg.text(x, y, f"{number:.0f}", anchor="middle", colour=svg.FAINT))
        y = self.plot + PLOT + 16
        parts.append(svg.text(LEFT - 8, y, "instruction", anchor="end", colour=svg.FAINT))
        return parts

    def _corners(self, allocation: Allocation) -> tuple[float, float, float, float]:
        """Return left, top, width and height."""
        x, y = self.x(allocation.first), self.y(allocation.end)
        return x, y, self.x(allocation.last + 1) - x, self.y(allocation.start) - y

    def _peak(self) -> list[str]:
        x = self.x(self.arena.fullest_step + 0.5)
        return [svg.line(x, self.plot - 6, x, self.plot + PLOT, svg.ALARM, dash="4 3")]

    def _loads(self) -> list[str]:
        """Draw the bytes that are live at every step."""
        bottom, right = self.strip + STRIP, WIDTH - RIGHT
        parts = [svg.rect(LEFT, self.strip, right - LEFT, STRIP, "#f6f7f8")]
        scale = STRIP / self.full
        points = [f"{LEFT},{bottom:.1f}"]
        for step, load in enumerate(self.arena.load):
            y = bottom - load * scale
            points += [f"{self.x(step):.1f},{y:.1f}", f"{self.x(step + 1):.1f},{y:.1f}"]
        points.append(f"{right},{bottom:.1f}")
        parts.append(f'<polygon points="{" ".join(points)}" fill="#9aa7b2"/>')
        for i, word in enumerate(("bytes", "live", "at once")):
            y = self.strip + 16 + 14 * i
            parts.append(svg.text(LEFT - 8, y, word, anchor="end", colour=svg.FAINT))
        x = self.x(self.arena.fullest_step + 0.5)
        parts.append(svg.line(x, self.strip, x, bottom + 6, svg.ALARM, dash="4 3"))
        text = f"{bytes_text(self.arena.largest_live_set)} at {self._step()}"
        anchor = "start" if x < WIDTH / 3 else "end" if x > 2 * WIDTH / 3 else "middle"
        parts.append(svg.text(x, bottom + 18, text, anchor=anchor, colour=svg.ALARM, weight="600"))
        return parts

    def _step(self) -> str:
        step = self.arena.fullest_step
        if step == 0:
            return "the start"
        if step > len(self.method.instructions):
            return "the end"
        op = short_name(self.method.instructions[step - 1])
        return f"instruction {step - 1} ({op})"

    def _list(self) -> list[str]:
        parts = []
        for i, (size, each) in enumerate(self.there):
            y = self.listing + 17 * i
            shape = f"{each.dtype}[{', '.join(map(str, each.sizes))}]"
            share = f"{100 * size / max(self.arena.size, 1):.1f} %"
            columns = (
                (LEFT + 76, "end", bytes_text(size)),
                (LEFT + 136, "end", share),
                (LEFT + 172, "start", svg.cut(label_of(each), 34)),
                (LEFT + 400, "start", svg.cut(shape, 40)),
                (LEFT + 660, "start", svg.cut(each.module, 44)),
                (LEFT + 950, "start", svg.cut(each.source, 30)),
            )
            parts.append(svg.rect(LEFT + 150, y - 10, 11, 11, self._colour(each)))
            parts += [svg.text(x, y, text, anchor=anchor) for x, anchor, text in columns if text]
        return parts
