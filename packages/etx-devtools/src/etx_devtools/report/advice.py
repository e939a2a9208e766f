# SPDX-License-Identifier: BSD-3-Clause
"""The few sentences that matter first, each from numbers of the file or of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from etx_schema.inspect.arenas import MethodMemory

from etx_devtools.diff.rows import Row
from etx_devtools.size import SizeReport

__all__ = ["advice"]

LOUD = 0.1


def advice(
    methods: Mapping[str, Sequence[Row]],
    memories: Iterable[MethodMemory],
    report: SizeReport,
    measured: Mapping[str, Sequence[float]],
) -> Iterator[str]:
    """Yield sentences: where the time, the bytes and the memory are, and what is not known."""
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
            yield from _slow(name, [row.operator for row in rows], times)
        if rows and not any(row.module for row in rows):
            yield (
                f"{name}: the file does not say where instructions come from; etx compile stores "
                "it, etx strip removes it."
            )
    named = [row for row in report.by("operator") if not row.name.startswith("(")]
    for top in named[:1]:
        share = 100 * top.bytes / report.file_size
        yield f"{share:.0f} % of the file is {top.name}."
    for memory in memories:
        for arena in memory.arenas:
            if arena.gap > LOUD and arena.largest_live_set:
                yield (
                    f"{memory.method}: arena {arena.memory_id} has {arena.size:,} bytes, "
                    f"{arena.largest_live_set:,} are live at once."
                )


def _slow(name: str, operators: Sequence[str], times: Sequence[float]) -> Iterator[str]:
    sums: dict[str, float] = {}
    for operator, time in zip(operators, times, strict=False):
        sums[operator] = sums.get(operator, 0.0) + time
    total = sum(times)
    operator, most = max(sums.items(), key=lambda item: item[1])
    count = sum(each == operator for each in operators)
    place = "" if operator.startswith("delegate ") else " outside of delegates"
    yield (f"{name}: {100 * most / total:.0f} % of {total:.3g} ms is in {count} {operator}{place}.")
