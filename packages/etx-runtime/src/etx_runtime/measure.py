# SPDX-License-Identifier: BSD-3-Clause
"""Measure a model: load time, latencies, memory, times of operators."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from etx_runtime.runtime import Method, Runtime

Progress = Callable[[int, int], None]


def measure_load(path: str, data_paths: Sequence[str], name: str) -> tuple[Method, float]:
    """Load a method and return it with the milliseconds that took, plugins not counted."""
    runtime = Runtime.get()
    assert runtime.operator_registry.operator_names is not None
    start = time.perf_counter()
    method = runtime.load_program(path, data_paths=data_paths).load_method(name)
    return method, (time.perf_counter() - start) * 1e3


def measure_latency(
    method: Method, inputs: list[Any], iterations: int, warmup: int, progress: Progress
) -> dict[str, float]:
    """Execute and return milliseconds: the first call, then median, p90 and least of the rest."""
    start = time.perf_counter()
    method.execute(inputs)
    first = (time.perf_counter() - start) * 1e3
    for done in range(warmup):
        method.execute(inputs)
        progress(done + 1, warmup + iterations)
    times = []
    for done in range(iterations):
        start = time.perf_counter()
        method.execute(inputs)
        times.append((time.perf_counter() - start) * 1e3)
        progress(warmup + done + 1, warmup + iterations)
    times.sort()
    return {
        "first_ms": first,
        "median_ms": times[len(times) // 2],
        "p90_ms": times[min(len(times) - 1, len(times) * 9 // 10)],
        "min_ms": times[0],
    }


def operator_times(method: Method, inputs: list[Any]) -> dict[str, float]:
    """Return milliseconds by operator of one execution, the slowest first."""
    totals: dict[str, float] = {}
    for _, name, nanoseconds in method.profile(inputs)[1]:
        totals[name] = totals.get(name, 0.0) + nanoseconds / 1e6
    return dict(sorted(totals.items(), key=lambda row: -row[1]))


def resident_bytes() -> int | None:
    """Return the resident memory of this process, None where it cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return None


def show_progress(done: int, total: int) -> None:
    """Write a line of progress where people see it, and nothing into files."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done}/{total} executions", end=end, file=sys.stderr, flush=True)
