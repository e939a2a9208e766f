# SPDX-License-Identifier: BSD-3-Clause
"""`etx bench`: measure files, in turns where there are several."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from etx_runtime import bits
from etx_runtime.commands.measure import (
    Progress,
    format_bytes,
    format_time,
    measure_load,
    operator_times,
    resident_bytes,
    summarise,
    time_call,
)
from etx_runtime.commands.samples import prepare_calls
from etx_runtime.commands.table import print_table
from etx_runtime.errors import InputError
from etx_runtime.runtime import Method
from etx_runtime.threads import get_num_threads, set_num_threads

LINES = ("load", "first", "min", "median", "p90", "p99", "max", "mean", "std")
FEWEST, MOST = 10, 10_000
PROFILED = 10


def bench(options: argparse.Namespace) -> None:
    """Measure each file; an iteration calls every one of them once."""
    if options.threads:
        set_num_threads(options.threads)
    loaded = [
        measure_load(path, options.data, options.method, options.mmap) for path in options.file
    ]
    methods = [method for method, _ in loaded]
    inputs = [_one_call(method, options) for method in methods]
    first = [time_call(method, given) for method, given in zip(methods, inputs, strict=True)]
    times = _measure(methods, inputs, options)
    rows: list[dict[str, Any]] = []
    for index, (method, load_ms) in enumerate(loaded):
        path = options.file[index]
        row: dict[str, Any] = {
            "file": path,
            "method": method.metadata.name(),
            "file_bytes": Path(path).stat().st_size,
            "inputs": [_shape(value) for value in inputs[index]],
            "threads": get_num_threads(),
            "iterations": len(times[index]),
            "load_ms": load_ms,
            "first_ms": first[index][1],
            **summarise(times[index]),
            "arena_bytes": method.memory_bytes(),
            "resident_bytes": resident_bytes(),
        }
        if options.operators:
            row["operators"] = operator_times(method, inputs[index], PROFILED)
        if index > 0:
            row["times_faster"] = rows[0]["median_ms"] / row["median_ms"]
            row["largest_difference"] = _difference(
                (methods[0], first[0][0]), (method, first[index][0])
            )
        rows.append(row)
    if options.json:
        print(json.dumps(rows if len(rows) > 1 else rows[0]))
    else:
        _print(rows)


def _measure(
    methods: list[Method], inputs: list[list[Any]], options: argparse.Namespace
) -> list[list[float]]:
    """Return milliseconds of each call by file, after the warm-up."""
    times: list[list[float]] = [[] for _ in methods]
    progress = Progress()
    total = options.iterations
    end = time.monotonic() + options.seconds
    done = -options.warmup
    try:
        while done < (total or FEWEST) or (
            total is None and done < MOST and time.monotonic() < end
        ):
            for method, given, measured in zip(methods, inputs, times, strict=True):
                milliseconds = time_call(method, given, borrow=True)[1]
                if done >= 0:
                    measured.append(milliseconds)
            done += 1
            if done == 0:
                end = time.monotonic() + options.seconds
            progress.show(max(0, done), total, "iterations")
    finally:
        progress.close()
    return times


def _one_call(method: Method, options: argparse.Namespace) -> list[Any]:
    calls = prepare_calls(method, options.inputs)
    if len(calls) != 1:
        raise InputError(f"bench takes inputs for one call, got {len(calls)} sets")
    return calls[0]


def _shape(value: Any) -> Any:
    return list(value.shape) if hasattr(value, "shape") else value


def _difference(first: tuple[Method, list[Any]], second: tuple[Method, list[Any]]) -> float | None:
    """Return the largest difference between outputs, None where they cannot be compared."""
    one, other = (
        [
            bits.as_numbers(value, info.dtype or "")
            for value, info in zip(outputs, method.outputs, strict=True)
        ]
        for method, outputs in (first, second)
    )
    if len(one) != len(other):
        return None
    largest = 0.0
    for x, y in zip(one, other, strict=True):
        if x is None or y is None or x.shape != y.shape:
            return None
        if x.size:
            difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
            largest = max(largest, float(difference.max()))
    return largest


def _print(rows: list[dict[str, Any]]) -> None:
    threads, iterations = rows[0]["threads"], rows[0]["iterations"]
    shapes = ", ".join(str(shape) for shape in rows[0]["inputs"]) or "none"
    print(f"{iterations} iterations, {threads} thread{'s' * (threads > 1)}; inputs {shapes}")
    marks = [f"[{index}]" for index in range(len(rows))] if len(rows) > 1 else [""]
    for mark, row in zip(marks, rows, strict=True):
        print(f"{mark} {row['file']}: {format_bytes(row['file_bytes'])}".strip())
    print()
    lines = [(name, *(format_time(row[f"{name}_ms"]) for row in rows)) for name in LINES]
    for name in ("planned", "method", "temp"):
        cells = (format_bytes(row["arena_bytes"][name]) for row in rows)
        lines.append((f"{name} memory", *cells))
    print_table(("", *marks), lines)
    if rows[0]["resident_bytes"] is not None:
        print(f"\nthe process has {format_bytes(rows[0]['resident_bytes'])} resident")
    for mark, row in zip(marks[1:], rows[1:], strict=True):
        difference = row["largest_difference"]
        shown = "cannot be compared" if difference is None else f"differ by {difference:.3g}"
        print(f"{mark} is {row['times_faster']:.2f} times as fast as [0]; their outputs {shown}")
    if "operators" in rows[0]:
        print()
        _print_operators(rows, marks)


def _print_operators(rows: list[dict[str, Any]], marks: list[str]) -> None:
    """Print a line for each operator or delegate: calls, time and share by file."""
    found = [{line["name"]: line for line in row["operators"]} for row in rows]
    totals = [sum(line["ms"] for line in row["operators"]) for row in rows]
    headings = ["operator"]
    for mark in marks:
        headings += [f"{mark} calls".strip(), "time", "share"]
    lines = []
    for name in dict.fromkeys(name for row in found for name in row):
        cells = [name]
        for row, total in zip(found, totals, strict=True):
            line = row.get(name)
            share = 100 * line["ms"] / total if line and total else 0.0
            cells += (
                ["-", "-", "-"]
                if line is None
                else [str(line["calls"]), format_time(line["ms"]), f"{share:.1f} %"]
            )
        lines.append(cells)
    sums = ["all"]
    for row, total in zip(rows, totals, strict=True):
        calls = sum(line["calls"] for line in row["operators"])
        sums += [str(calls), format_time(total), ""]
    print_table(headings, [*lines, sums])
