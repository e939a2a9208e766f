# SPDX-License-Identifier: BSD-3-Clause
"""A profile as Chrome trace events, for ui.perfetto.dev and chrome://tracing."""

from __future__ import annotations

from typing import Any

from etx_devtools.etdump import KERNEL, Run, Span, ThreadSpan
from etx_devtools.profile.profile import MS, Profile


def chrome_trace(profile: Profile, *, tick_ms: float = MS) -> dict[str, Any]:
    """Return the document: a complete event a span, what is in a delegate nested in its call.

    Each thread is a lane, with its part of the loops that several ran.
    """
    starts = [span.start for run in profile.runs for span in run.spans]
    first = min(starts, default=0)
    runs = [run for run in profile.runs if run.method in (None, profile.method)]
    events = [_name("process_name", profile.file), _name("thread_name", profile.method)]
    for thread in sorted({part.thread for run in runs for part in run.threads} - {0}):
        events.append(_name("thread_name", f"thread {thread}", thread))
    for run in runs:
        events += [
            _event(profile, run, span, first, 1e3 * tick_ms)
            for span in run.spans
            if not span.name.startswith(KERNEL)
        ]
        events += [_part(profile, part, first, 1e3 * tick_ms) for part in run.threads]
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _name(kind: str, name: str, thread: int = 0) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": 0, "tid": thread, "args": {"name": name}}


def _event(profile: Profile, run: Run, span: Span, first: int, tick_us: float) -> dict[str, Any]:
    name, args = span.name, {}
    if run.is_execution and span.chain == 0:
        step = profile.steps[span.instruction]
        known = {"instruction": span.instruction, "module": step.module, "line": step.source}
        if span.delegate_id is None:
            name = step.name
            known["shape"] = step.shape
        args = {key: value for key, value in known.items() if value not in (None, "")}
    return _complete(name, span, 0, first, tick_us, args)


def _part(profile: Profile, part: ThreadSpan, first: int, tick_us: float) -> dict[str, Any]:
    args = {"instruction": part.instruction, "items": part.items}
    name = profile.steps[part.instruction].name
    return _complete(name, part, part.thread, first, tick_us, args)


def _complete(
    name: str,
    span: Span | ThreadSpan,
    thread: int,
    first: int,
    tick_us: float,
    args: dict[str, Any],
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": 0,
        "tid": thread,
        "ts": round((span.start - first) * tick_us, 3),
        "dur": round(span.ticks * tick_us, 3),
        "args": args,
    }
