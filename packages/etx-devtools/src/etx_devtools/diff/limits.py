# SPDX-License-Identifier: BSD-3-Clause
"""Limits on how much a file may grow: `arena>+2%`, `size>+1000`, `time>5`."""

from __future__ import annotations

import math
import re

from etx_schema import EtxError

from etx_devtools.diff.changes import Difference

__all__ = ["METRICS", "exceeded"]

METRICS = ("arena", "error", "instructions", "size", "time", "weights")
_FORM = re.compile(r"\s*(\w+)\s*>\s*(\+?)\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(%?)\s*")


def exceeded(limit: str, found: Difference) -> str:
    """Return how `found` breaks a limit, empty where it does not.

    `NAME>+X%` and `NAME>+X` limit the growth, `NAME>X` the value in the second file.
    """
    name, plus, number, percent = parse(limit)
    before, after = _values(name, found)
    most = number
    if plus:
        most = before * (1 + number / 100) if percent else before + number
    return f"{name} is {after:g} (was {before:g}), {limit} allows {most:g}" if after > most else ""


def parse(limit: str) -> tuple[str, bool, float, bool]:
    """Return name, whether it limits growth, the number, and whether that is in percent."""
    match = _FORM.fullmatch(limit)
    try:
        number = float(match[3]) if match else math.nan
    except ValueError:
        number = math.nan
    if match is None or match[1] not in METRICS or not number >= 0 or (match[4] and not match[2]):
        raise EtxError(
            f"{limit!r}: expected NAME>+X%, NAME>+X or NAME>X, where NAME is {', '.join(METRICS)}"
        )
    return match[1], bool(match[2]), number, bool(match[4])


def _values(name: str, found: Difference) -> tuple[float, float]:
    if name == "size":
        return found.sizes
    if name == "weights":
        return found.weight_bytes
    if name == "arena":
        arenas = [each.arenas for each in found.methods]
        return sum(sum(a) for a, _ in arenas), sum(sum(b) for _, b in arenas)
    if name == "instructions":
        counts = [each.instructions for each in found.methods]
        return sum(a for a, _ in counts), sum(b for _, b in counts)
    if found.run is None:
        raise EtxError(f"a limit on {name} needs --run")
    if name == "time":
        before, after = found.run["milliseconds"]
        return before, after
    outputs = found.run["outputs"]
    return 0.0, math.inf if None in outputs else max(outputs, default=0.0)
