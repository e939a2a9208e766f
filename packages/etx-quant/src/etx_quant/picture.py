# SPDX-License-Identifier: BSD-3-Clause
"""A report as a picture: a bar of decibels for each layer, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Bar", "draw"]

LEFT, WIDE, ROW, TOP = 260, 420, 18, 64
INK, FAINT, QUANTIZED, FLOAT, ALARM = "#22282e", "#8a939b", "#3d7ea6", "#c9ced3", "#b3261e"


@dataclass(frozen=True)
class Bar:
    """A layer: its decibels, and the share of values that its integers cannot hold."""

    name: str
    operator: str
    sqnr: float
    saturated: float
    is_float: bool


def draw(title: str, bars: Sequence[Bar], target: float | None) -> str:
    """Return the picture; a red line is the target, a bar with a red end saturates."""
    high = TOP + ROW * len(bars) + 30
    most = max([60.0, *(bar.sqnr for bar in bars if math.isfinite(bar.sqnr))])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 90}" height="{high}" '
        f'font-family="sans-serif" font-size="11">'
    )
    parts = [head, '<rect width="100%" height="100%" fill="white"/>']
    parts += [_text(16, 24, title, size=13)]
    parts += [_text(16, 44, "SQNR of each layer's result, dB", FAINT)]
    parts += _scale(most, high - 24)
    for i, bar in enumerate(bars):
        parts += _bar(bar, TOP + ROW * i, most)
    if target is not None and target <= most:
        x = LEFT + WIDE * target / most
        parts += [_line(x, TOP - 6, x, high - 24, ALARM)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _scale(most: float, bottom: float) -> Iterator[str]:
    for value in range(0, int(most) + 1, 10):
        x = LEFT + WIDE * value / most
        yield _line(x, TOP - 6, x, bottom, "#e6e9ec")
        yield _text(x, bottom + 14, str(value), FAINT, anchor="middle")


def _bar(layer: Bar, y: float, most: float) -> Iterator[str]:
    length = WIDE * min(max(layer.sqnr, 0.0), most) / most
    colour = FLOAT if layer.is_float else QUANTIZED
    name = layer.name if len(layer.name) <= 38 else f"…{layer.name[-37:]}"
    yield _text(LEFT - 8, y + 12, name, anchor="end")
    tip = f"<title>{escape(f'{layer.name}: {layer.operator}, {layer.sqnr:.1f} dB')}</title>"
    yield _rect(LEFT, y + 3, length, colour, tip)
    if layer.saturated > 0.001:
        yield _rect(LEFT + length - 4, y + 3, 4, ALARM)
    value = f"{layer.sqnr:.1f}" if math.isfinite(layer.sqnr) else "exact"
    yield _text(LEFT + length + 6, y + 12, f"{value}{' float' if layer.is_float else ''}", FAINT)


def _rect(x: float, y: float, wide: float, colour: str, inside: str = "") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{ROW - 6}" fill="{colour}">'
        f"{inside}</rect>"
    )


def _line(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'


def _text(
    x: float, y: float, content: str, colour: str = INK, anchor: str = "start", size: int = 11
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" '
        f'font-size="{size}">{escape(content)}</text>'
    )
