# SPDX-License-Identifier: BSD-3-Clause
"""Measure a model: load time, latencies, memory, times of operators."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from etx_runtime.runtime import Method, Runtime


def measure_load(path: str, data_paths: Sequence[str], name: str) -> tuple[Method, float]:
    """Load a method and return it with the milliseconds that took, plugins not counted."""
    runtime = Runtime.get()
    assert runtime.operator_registry.operator_names is not None
    start = time.perf_counter()
    method = runtime.load_program(path, data_paths=data_paths).load_method(name)
    return method, (time.perf_counter() - start) * 1e3


def time_call(method: Method, inputs: list[Any]) -> tuple[list[Any], float]:
    """Execute once; return the outputs and the milliseconds that took."""
    start = time.perf_counter()
    outputs = method.execute(inputs)
    return outputs, (time.perf_counter() - start) * 1e3


def summarise(times: Sequence[float]) -> dict[str, float]:
    """Return mean and percentiles (nearest rank) of milliseconds."""
    ordered = sorted(times)

    def percentile(p: int) -> float:
        return ordered[max(0, -(-len(ordered) * p // 100) - 1)]

    return {
        "min_ms": ordered[0],
        "median_ms": percentile(50),
        "p90_ms": percentile(90),
        "p99_ms": percentile(99),
        "mean_ms": sum(ordered) / len(ordered),
    }


def operator_times(method: Method, inputs: list[Any], executions: int) -> dict[str, float]:
    """Return milliseconds by operator, the median of some executions, slowest first."""
    times: dict[str, list[float]] = {}
    for run in range(executions):
        for _, name, nanoseconds in method.profile(inputs)[1]:
            row = times.setdefault(name, [0.0] * executions)
            row[run] += nanoseconds / 1e6
    medians = {name: statistics.median(row) for name, row in times.items()}
    return dict(sorted(medians.items(), key=lambda row: -row[1]))


def format_time(milliseconds: float) -> str:
    """Format with three digits and the unit that suits."""
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if milliseconds * scale >= 1:
            return f"{milliseconds * scale:.3g} {unit}"
    return f"{milliseconds * 1e6:.3g} ns"


def format_bytes(count: float) -> str:
    """Format with three digits and the unit that suits."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} B"


def resident_bytes() -> int | None:
    """Return the resident memory of this process, None where it cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return None


def show_progress(done: int, total: int) -> None:
    """Write a line of progress where people see it, and nothing into files."""
    if sys.stderr.isatty() and total > 1:
        end = "\n" if done == total else ""
        print(f"\r{done}/{total} executions", end=end, file=sys.stderr, flush=True)
