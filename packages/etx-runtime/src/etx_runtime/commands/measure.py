# SPDX-License-Identifier: BSD-3-Clause
"""Measure a model: load time, latencies, memory, times of operators."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from etx_schema.calls import choose_method

from etx_runtime.errors import LoadError
from etx_runtime.recorder import Recorder
from etx_runtime.runtime import Method, Runtime


def measure_load(
    path: str,
    data_paths: Sequence[str],
    name: str | None,
    mmap: bool = True,
    recorder: Recorder | None = None,
) -> tuple[Method, float]:
    """Load a method and return it with the milliseconds that took, plugins not counted.

    Without a `name` it is `forward` or the only one.
    """
    runtime = Runtime.get()
    assert runtime.operator_registry.operator_names is not None
    start = time.perf_counter()
    try:
        program = runtime.load_program(path, data_paths=data_paths, mmap=mmap)
        chosen = choose_method(program.method_names, None, path) if name is None else name
        method = program.load_method(chosen, recorder=recorder)
    except LoadError as error:
        shown = os.fsencode(path).decode(errors="replace")
        text = str(error).replace(shown, path) if shown in str(error) else f"{path}: {error}"
        raise LoadError(text, error.code, error.name, error.instruction) from error.__cause__
    return method, (time.perf_counter() - start) * 1e3


def time_call(
    method: Method, inputs: list[Any], borrow: bool = False, recorder: Recorder | None = None
) -> tuple[list[Any], float]:
    """Execute once; return the outputs and the milliseconds that took."""
    start = time.perf_counter()
    if recorder is None:
        outputs = method.execute(inputs, borrow=borrow)
    else:
        outputs = method.trace(inputs, recorder)
    return outputs, (time.perf_counter() - start) * 1e3


def summarise(times: Sequence[float]) -> dict[str, float]:
    """Return mean, standard deviation and percentiles (nearest rank) of milliseconds."""
    ordered = sorted(times)

    def percentile(p: int) -> float:
        return ordered[max(0, -(-len(ordered) * p // 100) - 1)]

    return {
        "min_ms": ordered[0],
        "median_ms": percentile(50),
        "p90_ms": percentile(90),
        "p99_ms": percentile(99),
        "max_ms": ordered[-1],
        "mean_ms": sum(ordered) / len(ordered),
        "std_ms": statistics.pstdev(ordered),
    }


def operator_times(method: Method, inputs: list[Any], executions: int) -> list[dict[str, Any]]:
    """Return calls and milliseconds of each operator, the median of executions, slowest first.

    What recording an instruction takes is measured and taken off.
    """
    cost = Recorder.cost_ns()
    times: dict[str, list[float]] = {}
    calls: dict[str, int] = {}
    for run in range(executions):
        for _, name, nanoseconds in method.profile(inputs)[1]:
            row = times.setdefault(name, [0.0] * executions)
            row[run] += max(0.0, nanoseconds - cost) / 1e6
            calls[name] = calls.get(name, 0) + 1
    rows = [
        {"name": name, "calls": calls[name] // executions, "ms": statistics.median(row)}
        for name, row in times.items()
    ]
    return sorted(rows, key=lambda row: -row["ms"])


def format_time(milliseconds: float) -> str:
    """Format with three digits and the unit that suits."""
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if milliseconds * scale >= 1:
            return f"{_three_digits(milliseconds * scale)} {unit}"
    return f"{_three_digits(milliseconds * 1e6)} ns"


def format_bytes(count: float) -> str:
    """Format with three digits and the unit that suits."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{_three_digits(count / scale)} {unit}"
    return f"{count:.0f} B"


def _three_digits(number: float) -> str:
    text = f"{number:.3g}"
    return f"{number:.0f}" if "e" in text else text


def resident_bytes() -> int | None:
    """Return the resident memory of this process, None where it cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return None


class Progress:
    """A line of progress where people see it, once work takes long; nothing into files."""

    def __init__(self, quiet_seconds: float = 1.0) -> None:
        self._start = self._next = time.monotonic() + quiet_seconds
        self._width = 0

    def show(self, done: int, total: int | None, unit: str = "executions") -> None:
        """Say how far the work is; at most ten times a second."""
        now = time.monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + 0.1
        text = f"{done} of {total} {unit}" if total is not None else f"{done} {unit}"
        self._width = max(self._width, len(text))
        print(f"\r{text.ljust(self._width)}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Erase the line."""
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0
