# SPDX-License-Identifier: BSD-3-Clause
"""`etx bench`: measure files, in turns where there are several."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from etx_runtime.errors import InputError
from etx_runtime.measure import (
    format_bytes,
    format_time,
    measure_load,
    operator_times,
    resident_bytes,
    show_progress,
    summarise,
    time_call,
)
from etx_runtime.runtime import Method
from etx_runtime.samples import prepare_calls
from etx_runtime.threads import get_num_threads, set_num_threads

LINES = ("load", "first", "min", "median", "p90", "p99", "mean")


def bench(options: argparse.Namespace) -> None:
    """Measure each file; an iteration calls every one of them once."""
    if options.threads:
        set_num_threads(options.threads)
    loaded = [measure_load(path, options.data, options.method) for path in options.file]
    inputs = [_one_call(method, options) for method, _ in loaded]
    times: list[list[float]] = [[] for _ in loaded]
    first_outputs: list[list[Any]] = []
    firsts = []
    for (method, _), given in zip(loaded, inputs, strict=True):
        outputs, milliseconds = time_call(method, given)
        first_outputs.append(outputs)
        firsts.append(milliseconds)
    total = options.warmup + options.iterations
    for done in range(total):
        for (method, _), given, measured in zip(loaded, inputs, times, strict=True):
            milliseconds = time_call(method, given)[1]
            if done >= options.warmup:
                measured.append(milliseconds)
        show_progress(done + 1, total)
    rows: list[dict[str, Any]] = []
    for index, (method, load_ms) in enumerate(loaded):
        path = options.file[index]
        row: dict[str, Any] = {
            "file": path,
            "method": options.method,
            "file_bytes": Path(path).stat().st_size,
            "threads": get_num_threads(),
            "iterations": options.iterations,
            "load_ms": load_ms,
            "first_ms": firsts[index],
            **summarise(times[index]),
            "arena_bytes": method.memory_bytes(),
            "resident_bytes": resident_bytes(),
        }
        if options.operators:
            row["operators_ms"] = operator_times(method, inputs[index], min(10, options.iterations))
        if index > 0:
            row["times_faster"] = rows[0]["median_ms"] / row["median_ms"]
            row["largest_difference"] = _difference(first_outputs[0], first_outputs[index])
        rows.append(row)
    if options.json:
        print(json.dumps(rows if len(rows) > 1 else rows[0]))
    else:
        _print(rows)


def _one_call(method: Method, options: argparse.Namespace) -> list[Any]:
    calls = prepare_calls(method, options)
    if len(calls) != 1:
        raise InputError(f"bench takes inputs for one call, {len(calls)} sets were given")
    return calls[0]


def _difference(outputs: list[Any], others: list[Any]) -> float | None:
    """Return the largest difference between outputs, None where they cannot be compared."""
    if len(outputs) != len(others):
        return None
    largest = 0.0
    for a, b in zip(outputs, others, strict=True):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
            return None
        if x.size:
            difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
            largest = max(largest, float(difference.max()))
    return largest


def _print(rows: list[dict[str, Any]]) -> None:
    print(f"{rows[0]['threads']} threads, {rows[0]['iterations']} iterations")
    for index, row in enumerate(rows):
        label = f"[{index}] " if len(rows) > 1 else ""
        print(f"{label}{row['file']}: {format_bytes(row['file_bytes'])}")
    if len(rows) > 1:
        _print_line("", [f"[{index}]" for index in range(len(rows))])
    for name in LINES:
        _print_line(name, [format_time(row[name + "_ms"]) for row in rows])
    for name in ("planned", "method", "temp"):
        _print_line(name, [format_bytes(row["arena_bytes"][name]) for row in rows])
    if rows[0]["resident_bytes"] is not None:
        _print_line("process", [format_bytes(rows[0]["resident_bytes"]) + " resident"])
    for index, row in enumerate(rows[1:], 1):
        difference = row["largest_difference"]
        shown = "not comparable" if difference is None else f"{difference:.3g}"
        print(f"[{index}] is {row['times_faster']:.2f} times as fast; outputs differ by {shown}")
    for name in dict.fromkeys(name for row in rows for name in row.get("operators_ms", ())):
        cells = (row["operators_ms"].get(name) for row in rows)
        times = ["-" if cell is None else format_time(cell) for cell in cells]
        print("".join(f"{time:>12}" for time in times) + f"  {name}")


def _print_line(name: str, cells: list[str]) -> None:
    print(f"{name:8}" + "".join(f"{cell:>12}" for cell in cells))
