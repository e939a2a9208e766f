# SPDX-License-Identifier: BSD-3-Clause
"""The few sentences that matter first, each from numbers of the file or of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from etx_schema.inspect.arenas import MethodMemory

from etx_devtools.diff.rows import Row
from etx_devtools.report.stages import Place, reasons_by_place

__all__ = ["advice"]

LOUD = 0.1


def advice(
    methods: Mapping[str, Sequence[Row]],
    memories: Iterable[MethodMemory],
    sizes: Sequence[tuple[str, int]],
    measured: Mapping[str, Sequence[float]],
    log: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """Yield sentences: where the time, the bytes and the memory are, and what is not known.

    `sizes` are the bytes of the file by operator; `log` is that of the compiler.
    """
    for name, rows in methods.items():
        outside = [row for row in rows if not row.operator.startswith("delegate ")]
        calls = len(rows) - len(outside)
        if calls and outside:
            common = Counter(row.operator for row in outside).most_common(3)
            shown = ", ".join(f"{count} {operator}" for operator, count in common)
            text = f"{calls} calls of delegates, {len(outside)} instructions outside: {shown}"
            yield f"{name}: {text}."
        times = measured.get(name)
        if times is not None and sum(times) > 0:
            yield from _slow(name, rows, times, reasons_by_place((log or {}).get(name)))
        if rows and not any(row.module or row.source or row.origin for row in rows):
            yield (
                f"{name}: the file does not say where instructions come from; etx compile stores "
                "it, etx strip removes it."
            )
    named = [
        (what, count) for what, count in sizes if not what.startswith(("(", "named data etx/"))
    ]
    for what, count in named[:1]:
        share = 100 * count / sum(each for _, each in sizes)
        yield f"{share:.0f} % of the file is {what}."
    for memory in memories:
        for arena in memory.arenas:
            if arena.gap > LOUD and arena.largest_live_set:
                yield (
                    f"{memory.method}: arena {arena.memory_id} has {arena.size:,} bytes, "
                    f"{arena.largest_live_set:,} are live at once."
                )


def _slow(
    name: str, rows: Sequence[Row], times: Sequence[float], reasons: Mapping[Place, str]
) -> Iterator[str]:
    sums: dict[str, float] = {}
    for row, spent in zip(rows, times, strict=False):
        sums[row.operator] = sums.get(row.operator, 0.0) + spent
    total = sum(times)
    operator, most = max(sums.items(), key=lambda item: item[1])
    found = [row for row in rows if row.operator == operator]
    time = f"{total:.3g} ms" if total >= 1 else f"{1000 * total:.3g} µs"
    text = f"{name}: {100 * most / total:.0f} % of {time} is in {len(found)} {operator}"
    if operator.startswith("delegate "):
        yield f"{text}."
        return
    yield from _outside(text, found, reasons)
    lines: dict[str, float] = {}
    for row, spent in zip(rows, times, strict=False):
        lines[row.source] = lines.get(row.source, 0.0) + spent
    line, share = max(lines.items(), key=lambda item: item[1])
    if line:
        yield f"{name}: {100 * share / total:.0f} % of the time comes from {line}."


def _outside(text: str, found: Sequence[Row], reasons: Mapping[Place, str]) -> Iterator[str]:
    whys = Counter(reasons.get((row.origin, row.module, row.source), "") for row in found)
    why = next((why for why, _ in whys.most_common() if why), "")
    yield f"{text} outside of delegates{f': {why}' if why else ''}."
