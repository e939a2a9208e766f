# SPDX-License-Identifier: BSD-3-Clause
"""The few shapes of our pictures, as SVG."""

from __future__ import annotations

from html import escape

SIZE = 11
LETTER = 6.8
INK, FAINT, ALARM = "#22282e", "#8a939b", "#b3261e"


def ticks(high: float, count: int, binary: bool = False) -> list[float]:
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


def cut(text: str, length: int) -> str:
    """Shorten `text` to `length` letters."""
    return text if len(text) <= length else text[: max(length - 1, 0)] + "…"


def rect(
    x: float, y: float, wide: float, high: float, fill: str, line: str = "", inside: str = ""
) -> str:
    """Return a rectangle; `inside` is what it encloses, such as a tooltip."""
    stroke = f' stroke="{line}" stroke-width="0.6"' if line else ""
    body = f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{fill}"'
    return f"{body}{stroke}>{inside}</rect>" if inside else f"{body}{stroke}/>"


def line(x: float, y: float, to_x: float, to_y: float, colour: str, dash: str = "") -> str:
    """Return a line from (x, y) to (to_x, to_y)."""
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"'
        f"{pattern}/>"
    )


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: int = SIZE,
    anchor: str = "start",
    colour: str = INK,
    weight: str = "",
    turned: bool = False,
) -> str:
    """Return a line of text; `turned`, it runs from bottom to top."""
    more = f' font-weight="{weight}"' if weight else ""
    more += f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
        f'{more} pointer-events="none">{escape(content)}</text>'
    )
