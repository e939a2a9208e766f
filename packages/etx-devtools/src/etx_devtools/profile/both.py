# SPDX-License-Identifier: BSD-3-Clause
"""Two profiles side by side: lines of the same name, the largest change first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from etx_devtools.percentiles import median
from etx_devtools.profile.profile import Profile
from etx_devtools.profile.text import time_text
from etx_devtools.profile.views import Line, lines
from etx_devtools.tabular import draw


@dataclass(frozen=True)
class Pair:
    """Milliseconds of a line in the first file and in the second, None where it has none."""

    name: str
    before_ms: float | None
    after_ms: float | None
    module: str | None = None
    source: str | None = None

    @property
    def change_ms(self) -> float:
        """How much longer it takes in the second file."""
        return (self.after_ms or 0.0) - (self.before_ms or 0.0)

    @property
    def ratio(self) -> float | None:
        """The second's time by the first's; None where one is missing or 0."""
        return self.after_ms / self.before_ms if self.before_ms and self.after_ms else None


def pairs(one: Profile, other: Profile, view: str) -> list[Pair]:
    """Return the lines of both by name; instructions by operator and origin, in their order."""
    before, after = _named(lines(one, view), view), _named(lines(other, view), view)
    found = []
    for key in dict.fromkeys([*before, *after]):
        first, second = before.get(key), after.get(key)
        line = first or second
        assert line is not None
        times = [None if each is None else each.ms for each in (first, second)]
        found.append(Pair(key[0], times[0], times[1], line.module, line.source))
    return sorted(found, key=lambda pair: -abs(pair.change_ms))


def _named(found: Sequence[Line], view: str) -> dict[tuple[Any, ...], Line]:
    """Return lines without those in delegates, each by what it is and the how manieth."""
    counts: Counter[tuple[Any, ...]] = Counter()
    named = {}
    for line in found:
        if line.depth and view != "module":
            continue
        key: tuple[Any, ...] = (line.name,)
        if view == "module":
            key = (line.module or line.name,)
        if view == "instruction":
            key = (line.name.partition(" ")[2], line.module, line.source)
        named[(*key, counts[key])] = line
        counts[key] += 1
    return named


def document_of_both(
    one: Profile, other: Profile, view: str, documents: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return what `--json` prints: the document of each, and the pairs."""
    found = [
        vars(pair) | {"change_ms": pair.change_ms, "ratio": pair.ratio}
        for pair in pairs(one, other, view)
    ]
    return {"files": list(documents), "by": view, "pairs": found}


def print_both(one: Profile, other: Profile, view: str) -> None:
    """Print the pairs, and the time of a whole execution of each file."""
    rows = [
        [pair.name, _time(pair.before_ms), _time(pair.after_ms), _change(pair), _ratio(pair.ratio)]
        for pair in pairs(one, other, view)
    ]
    draw([view, "first", "second", "change", "ratio"], rows, [0])
    for profile in (one, other):
        print(f"{profile.file}: steady {time_text(median(profile.untraced_ms))}")
    steady = median(one.untraced_ms)
    if steady:
        print(f"the second takes {median(other.untraced_ms) / steady:.3g} times the first's time")


def _time(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else time_text(milliseconds)


def _change(pair: Pair) -> str:
    return ("+" if pair.change_ms >= 0 else "-") + time_text(abs(pair.change_ms))


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
