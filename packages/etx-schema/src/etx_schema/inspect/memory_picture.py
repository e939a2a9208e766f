# SPDX-License-Identifier: BSD-3-Clause
"""Draw planned memory: bytes over instructions, one panel an arena, as an SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from etx_schema.inspect.memory import Arena, MethodMemory, Tenant

WIDTH, LEFT, RIGHT = 1240, 92, 24
PLOT, STRIP, GAP = 420, 64, 26
SIZE = 11
LETTER = 6.8
PALETTE = (
    "#8fb8de", "#f2b880", "#9ccb9a", "#d9a7c7", "#b7a6d9",
    "#e6d37a", "#8ccfc9", "#e49a92", "#b5bd7c", "#c7b299",
)  # fmt: skip
KINDS = {"input": "#5f7f9f", "state": "#8a6d8f"}
REST = "#cfd3d6"
INK, FAINT, ALARM = "#22282e", "#8a939b", "#b3261e"

Names = Mapping[tuple[str, int], tuple[str, int | None]]


def picture(methods: Sequence[MethodMemory], title: str, names: Names) -> str:
    """Return the picture of all arenas; rectangles carry what they are as a tooltip."""
    parts: list[str] = []
    top = 44.0
    colours = _colours(methods)
    parts.append(_text(LEFT, 27, f"{title}: planned memory", size=17, weight="600"))
    for method in methods:
        for arena in method.arenas:
            if not arena.tenants:
                continue
            bank, capacity = names.get((method.method, arena.memory_id), ("", None))
            panel = _Panel(method, arena, colours, bank, capacity, top)
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


def bytes_text(count: float) -> str:
    """Return a number of bytes for people: `3.2 MiB`."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            digits = ".3g" if count < 1000 * size else ".0f"
            return f"{count / size:{digits}} {unit}"
    return f"{count:.0f} B"


def label_of(tenant: Tenant) -> str:
    """Return the short name of what made a tensor."""
    if tenant.kind in ("input", "state") and tenant.first == 0:
        return f"{tenant.kind} {tenant.name}"
    return _short(tenant.op)


def _kind(tenant: Tenant) -> str:
    return tenant.kind if tenant.kind in KINDS and tenant.op == tenant.kind else ""


def _colours(methods: Sequence[MethodMemory]) -> dict[str, str]:
    """Give the operators that take the most bytes for the longest a colour each."""
    area: dict[str, int] = {}
    for tenant in (t for method in methods for arena in method.arenas for t in arena.tenants):
        if not _kind(tenant):
            size = (tenant.end - tenant.start) * (tenant.last - tenant.first + 1)
            area[_short(tenant.op)] = area.get(_short(tenant.op), 0) + size
    ranked = sorted(area, key=lambda name: (-area[name], name))[: len(PALETTE)]
    return dict(zip(ranked, PALETTE, strict=False))


def _short(op: str) -> str:
    name = op.rpartition("::")[2].partition(".")[0]
    return op if op.startswith("delegate") else name


class _Panel:
    """One arena: a legend, rectangles, the peak, and the bytes that are wanted below."""

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
        self.moments = len(arena.load)
        self.head = top + 22
        ops = {_short(tenant.op) for tenant in arena.tenants if not _kind(tenant)}
        self.colours = {op: colour for op, colour in colours.items() if op in ops}
        self.plot = self.head + 44
        self.strip = self.plot + PLOT + 30
        self.listing = self.strip + STRIP + 40
        self.there = arena.at(arena.fullest)[:8]
        self.bottom = self.listing + 17 * len(self.there) + GAP
        self.full = max(arena.size, capacity or 0 if (capacity or 0) < 4 * arena.size else 0, 1)

    def x(self, moment: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * moment / self.moments

    def y(self, at: float) -> float:
        return self.plot + PLOT * (1 - at / self.full)

    def draw(self) -> list[str]:
        return [
            *self._header(),
            *self._axes(),
            *(self._box(tenant) for tenant in self.arena.tenants),
            *self._peak(),
            *(part for tenant in self.arena.tenants for part in self._label(tenant)),
            *self._loads(),
            *self._list(),
        ]

    def _colour(self, tenant: Tenant) -> str:
        kind = _kind(tenant)
        return KINDS[kind] if kind else self.colours.get(_short(tenant.op), REST)

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
            f" gap {100 * arena.gap:.1f} %, {len({t.value for t in arena.tenants})} tensors"
        )
        parts = [
            _text(LEFT, self.head, text, size=14, weight="600"),
            _text(WIDTH - RIGHT, self.head, rest, size=13, anchor="end"),
        ]
        x = float(LEFT)
        entries = [(n, c) for n, c in KINDS.items() if self._has_kind(n)]
        entries += list(self.colours.items())
        if any(self._colour(t) == REST for t in arena.tenants):
            entries.append(("others", REST))
        for label, colour in entries:
            label = _cut(label, 26)
            wide = 18 + LETTER * len(label) + 12
            if x + wide > WIDTH - RIGHT:
                break
            parts.append(_rect(x, self.head + 12, 11, 11, colour))
            parts.append(_text(x + 16, self.head + 22, label))
            x += wide
        return parts

    def _has_kind(self, kind: str) -> bool:
        return any(_kind(tenant) == kind for tenant in self.arena.tenants)

    def _axes(self) -> list[str]:
        right = WIDTH - RIGHT
        parts = [_rect(LEFT, self.plot, right - LEFT, PLOT, "#f6f7f8")]
        for at in _ticks(self.full, 7, binary=True):
            y = self.y(at)
            parts.append(_line(LEFT, y, right, y, "#e1e4e7"))
            parts.append(_text(LEFT - 8, y + 4, bytes_text(at), anchor="end", colour=FAINT))
        if self.capacity is not None and self.capacity <= self.full:
            y = self.y(self.capacity)
            parts.append(_line(LEFT, y, right, y, ALARM, dash="2 3"))
            text = f"capacity {bytes_text(self.capacity)}"
            parts.append(_text(right - 4, y - 4, text, anchor="end", colour=ALARM))
        for number in _ticks(max(self.moments - 2, 1), 14):
            x = self.x(number + 1.5)
            if x < right - 10:
                parts.append(_line(x, self.plot + PLOT, x, self.plot + PLOT + 4, FAINT))
                y = self.plot + PLOT + 16
                parts.append(_text(x, y, f"{number:.0f}", anchor="middle", colour=FAINT))
        y = self.plot + PLOT + 16
        parts.append(_text(LEFT - 8, y, "instruction", anchor="end", colour=FAINT))
        return parts

    def _corners(self, tenant: Tenant) -> tuple[float, float, float, float]:
        """Return left, top, width and height."""
        x, y = self.x(tenant.first), self.y(tenant.end)
        return x, y, self.x(tenant.last + 1) - x, self.y(tenant.start) - y

    def _box(self, tenant: Tenant) -> str:
        tip = f"<title>{escape(self._tip(tenant))}</title>"
        return _rect(*self._corners(tenant), self._colour(tenant), "#ffffff", tip)

    def _label(self, tenant: Tenant) -> list[str]:
        x, y, wide, high = self._corners(tenant)
        room = int((wide - 6) / LETTER)
        label = label_of(tenant)
        if high < 13 or room < min(len(label), 6):
            return self._upright(tenant, label)
        colour = "#ffffff" if _kind(tenant) else INK
        rows = [label]
        if high >= 28 and tenant.module:
            rows.append(tenant.module)
        if high >= 43 or (high >= 28 and not tenant.module):
            shape = ", ".join(map(str, tenant.sizes))
            rows.append(f"{tenant.dtype}[{shape}]  {bytes_text(tenant.end - tenant.start)}")
        rows = [row for i, row in enumerate(rows) if i == 0 or len(row) <= room]
        middle = y + high / 2 - 7 * (len(rows) - 1) + 4
        parts = []
        for i, row in enumerate(rows):
            weight = "600" if i == 0 and len(rows) > 1 else ""
            text = _cut(row, room)
            place = (x + wide / 2, middle + 14 * i)
            parts.append(_text(*place, text, anchor="middle", colour=colour, weight=weight))
        return parts

    def _upright(self, tenant: Tenant, label: str) -> list[str]:
        """Label what is high and narrow from bottom to top, if there is room."""
        x, y, wide, high = self._corners(tenant)
        room = int((high - 8) / LETTER)
        if wide < 14 or room < len(label):
            return []
        longer = f"{label}, {tenant.module}" if tenant.module else label
        text = longer if len(longer) <= room else label
        colour = "#ffffff" if _kind(tenant) else INK
        across, down = x + wide / 2 + 4, y + high / 2
        return [_text(across, down, text, anchor="middle", colour=colour, turned=True)]

    def _tip(self, tenant: Tenant) -> str:
        rows = [
            f"{label_of(tenant)} ({tenant.name}, {tenant.kind})",
            f"{tenant.dtype}[{', '.join(map(str, tenant.sizes))}], {tenant.nbytes:,} bytes",
            f"bytes {tenant.start:,} to {tenant.end:,}",
            f"instructions {max(tenant.first - 1, 0)} to {min(tenant.last - 1, self.moments - 3)}",
        ]
        return "\n".join(rows + [part for part in (tenant.module, tenant.source) if part])

    def _peak(self) -> list[str]:
        x = self.x(self.arena.fullest + 0.5)
        return [_line(x, self.plot - 6, x, self.plot + PLOT, ALARM, dash="4 3")]

    def _loads(self) -> list[str]:
        """Draw the bytes that are wanted at every moment."""
        bottom, right = self.strip + STRIP, WIDTH - RIGHT
        parts = [_rect(LEFT, self.strip, right - LEFT, STRIP, "#f6f7f8")]
        scale = STRIP / self.full
        points = [f"{LEFT},{bottom:.1f}"]
        for moment, load in enumerate(self.arena.load):
            y = bottom - load * scale
            points += [f"{self.x(moment):.1f},{y:.1f}", f"{self.x(moment + 1):.1f},{y:.1f}"]
        points.append(f"{right},{bottom:.1f}")
        parts.append(f'<polygon points="{" ".join(points)}" fill="#9aa7b2"/>')
        for i, word in enumerate(("bytes", "wanted", "at once")):
            y = self.strip + 16 + 14 * i
            parts.append(_text(LEFT - 8, y, word, anchor="end", colour=FAINT))
        x = self.x(self.arena.fullest + 0.5)
        parts.append(_line(x, self.strip, x, bottom + 6, ALARM, dash="4 3"))
        text = f"{bytes_text(self.arena.largest_live_set)} at {self._moment()}"
        anchor = "start" if x < WIDTH / 3 else "end" if x > 2 * WIDTH / 3 else "middle"
        parts.append(_text(x, bottom + 18, text, anchor=anchor, colour=ALARM, weight="600"))
        return parts

    def _moment(self) -> str:
        moment = self.arena.fullest
        if moment == 0:
            return "the start"
        if moment > len(self.method.instructions):
            return "the end"
        op = _short(self.method.instructions[moment - 1])
        return f"instruction {moment - 1} ({op})"

    def _list(self) -> list[str]:
        parts = []
        for i, (size, tenant) in enumerate(self.there):
            y = self.listing + 17 * i
            shape = f"{tenant.dtype}[{', '.join(map(str, tenant.sizes))}]"
            share = f"{100 * size / max(self.arena.size, 1):.1f} %"
            columns = (
                (LEFT + 76, "end", bytes_text(size)),
                (LEFT + 136, "end", share),
                (LEFT + 172, "start", _cut(label_of(tenant), 34)),
                (LEFT + 400, "start", _cut(shape, 40)),
                (LEFT + 660, "start", _cut(tenant.module, 44)),
                (LEFT + 950, "start", _cut(tenant.source, 30)),
            )
            parts.append(_rect(LEFT + 150, y - 10, 11, 11, self._colour(tenant)))
            parts += [_text(x, y, text, anchor=anchor) for x, anchor, text in columns if text]
        return parts


def _ticks(high: float, count: int, binary: bool = False) -> list[float]:
    """Return round numbers from 0 to `high`."""
    unit = 1.0
    if binary:
        while unit * 1024 <= high:
            unit *= 1024
    step = unit
    while high / step > count:
        step *= 2 if binary else 10
        if not binary and high / (step / 2) <= count:
            step /= 2
        elif not binary and high / (step / 5) <= count:
            step /= 5
    while binary and high / step < count / 2.5:
        step /= 2
    return [step * i for i in range(int(high / step) + 1)]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"


def _rect(
    x: float, y: float, wide: float, high: float, fill: str, line: str = "", inside: str = ""
) -> str:
    stroke = f' stroke="{line}" stroke-width="0.6"' if line else ""
    body = f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{fill}"'
    return f"{body}{stroke}>{inside}</rect>" if inside else f"{body}{stroke}/>"


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, dash: str = "") -> str:
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"'
        f"{pattern}/>"
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = SIZE,
    anchor: str = "start",
    colour: str = INK,
    weight: str = "",
    turned: bool = False,
) -> str:
    more = f' font-weight="{weight}"' if weight else ""
    more += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
        f'{more} pointer-events="none">{escape(text)}</text>'
    )
