# SPDX-License-Identifier: BSD-3-Clause
"""Percentiles of measured times."""

from __future__ import annotations

from collections.abc import Sequence


def median(numbers: Sequence[float]) -> float:
    """Return the median, 0 of none."""
    return percentile(numbers, 50)


def percentile(numbers: Sequence[float], p: float) -> float:
    """Return a percentile, linear between the nearest, as NumPy does; 0 of none."""
    ordered = sorted(numbers)
    if not ordered:
        return 0.0
    place = (len(ordered) - 1) * p / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    part, gap = place - below, ordered[above] - ordered[below]
    return ordered[above] - gap * (1 - part) if part >= 0.5 else ordered[below] + gap * part
