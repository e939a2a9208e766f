# SPDX-License-Identifier: BSD-3-Clause
"""Event blocks: what ran in the same way, with the times of each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from etx_schema import Blob

from etx_devtools.etdump import Run, Span
from etx_devtools.percentiles import percentile


class TimeScale(Enum):
    """Units of time; cycles are not converted."""

    NS = "ns"
    US = "us"
    MS = "ms"
    S = "s"
    CYCLES = "cycles"


PER_SECOND = {TimeScale.NS: 10**9, TimeScale.US: 10**6, TimeScale.MS: 10**3, TimeScale.S: 1}


def scale_of(source: TimeScale, target: TimeScale) -> float:
    """Return by what ticks are divided. Errors: ValueError of cycles and another unit."""
    if source is target:
        return 1
    if TimeScale.CYCLES in (source, target):
        raise ValueError(f"cycles are not {source.value} or {target.value}: both must be cycles")
    return PER_SECOND[source] / PER_SECOND[target]


@dataclass
class PerfData:
    """Times of an event, one for each execution."""

    raw: list[float]

    def percentile(self, p: float) -> float:
        """Return a percentile, linear between the nearest."""
        return percentile(self.raw, p)

    @property
    def p10(self) -> float:
        """Tenth percentile."""
        return self.percentile(10)

    @property
    def p50(self) -> float:
        """Median."""
        return self.percentile(50)

    @property
    def p90(self) -> float:
        """Ninetieth percentile."""
        return self.percentile(90)

    @property
    def avg(self) -> float:
        """Mean."""
        return sum(self.raw) / len(self.raw)

    @property
    def min(self) -> float:
        """The least."""
        return min(self.raw)

    @property
    def max(self) -> float:
        """The most."""
        return max(self.raw)


@dataclass
class Event:
    """One thing that ran, as often as its block did."""

    name: str
    perf_data: PerfData
    op_types: list[str] = field(default_factory=list)
    delegate_debug_identifier: int | str | None = None
    debug_handles: int | list[int] | None = None
    stack_traces: dict[str, str] = field(default_factory=dict)
    module_hierarchy: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_delegated_op: bool | None = None
    delegate_backend_name: str | None = None
    delegate_debug_metadatas: list[Any] = field(default_factory=list)
    debug_data: list[Any] = field(default_factory=list)
    start_time: list[int] = field(default_factory=list)
    chain: int = -1
    instruction: int = 0


@dataclass
class EventBlock:
    """Loads or executions with the same events."""

    name: str
    events: list[Event] = field(default_factory=list)
    source_time_scale: TimeScale = TimeScale.NS
    target_time_scale: TimeScale = TimeScale.MS
    bundled_input_index: int | None = None
    method: str | None = None


def blocks_of(
    runs: Sequence[Run],
    source: TimeScale,
    target: TimeScale,
    debug_buffer: Blob | None,
    convert: Callable[[int | str, int], int | float] | None = None,
) -> list[EventBlock]:
    """Return a block for each kind of run: of one name, method, input and sequence of events."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        signature = tuple((s.name, s.chain, s.instruction, s.delegate_id) for s in run.spans)
        key = (run.name, run.method, run.bundled_input_index, signature)
        groups.setdefault(key, []).append(run)
    divisor = scale_of(source, target)
    seen: dict[str, int] = {}
    found = []
    for (name, method, index, _), members in groups.items():
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name}_{seen[name] - 1}"
        values = _values(members[0], debug_buffer)
        events = [
            _event(members, place, divisor, values, convert)
            for place in range(len(members[0].spans))
        ]
        bundled = None if index == -1 else index
        found.append(EventBlock(unique, events, source, target, bundled, method))
    return found


def _event(
    runs: Sequence[Run],
    place: int,
    divisor: float,
    values: Mapping[Place, list[Any]],
    convert: Callable[[int | str, int], int | float] | None,
) -> Event:
    spans = [run.spans[place] for run in runs]
    first = spans[0]
    is_delegated = first.delegate_id is not None

    def time(span: Span) -> float:
        if is_delegated and convert is not None:
            name = span.delegate_id or 0
            return convert(name, span.end) - convert(name, span.start)
        return (span.end - span.start) / divisor

    return Event(
        first.name,
        PerfData([time(span) for span in spans]),
        delegate_debug_identifier=first.delegate_id,
        is_delegated_op=is_delegated,
        delegate_debug_metadatas=[span.metadata for span in spans if span.metadata],
        debug_data=values.get((first.chain, first.instruction, first.delegate_id), []),
        start_time=[span.start for span in spans],
        chain=first.chain,
        instruction=first.instruction,
    )


Place = tuple[int, int, int | str | None]


def _values(run: Run, debug_buffer: Blob | None) -> dict[Place, list[Any]]:
    """Return the values or statistics that each instruction of a run left."""
    found: dict[Place, list[Any]] = {}
    for seen in run.seen:
        if seen.chain == -1:
            continue
        value = seen.read(debug_buffer)
        if value is not None or debug_buffer is not None:
            found.setdefault((seen.chain, seen.instruction, seen.delegate_id), []).append(value)
    return found
