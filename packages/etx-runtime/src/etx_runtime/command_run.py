# SPDX-License-Identifier: BSD-3-Clause
"""`etx run`: call a method, print and write what it returns."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from etx_runtime.errors import RuntimeFailure
from etx_runtime.measure import format_time, measure_load, show_progress, time_call
from etx_runtime.samples import prepare_calls
from etx_runtime.threads import get_num_threads, set_num_threads


def run(options: argparse.Namespace) -> None:
    """Run the method as often as there are sets of inputs, with the same state."""
    if options.threads:
        set_num_threads(options.threads)
    method, load_ms = measure_load(options.file, options.data, options.method)
    calls = prepare_calls(method, options)
    total = len(calls) * options.iterations
    results: list[list[Any]] = []
    times: list[float] = []
    for inputs in calls:
        for _ in range(options.iterations):
            outputs, milliseconds = time_call(method, inputs)
            times.append(milliseconds)
            show_progress(len(times), total)
        results.append(outputs)
    rows = [[_describe(value) for value in outputs] for outputs in results]
    if options.output_dir:
        _write(Path(options.output_dir), options.format, results, rows)
    statistics = {
        "load_ms": load_ms,
        "calls": total,
        "first_ms": times[0],
        "mean_ms": sum(times) / total,
        "min_ms": min(times),
        "threads": get_num_threads(),
        "arena_bytes": method.memory_bytes(),
    }
    document: dict[str, Any] = {"file": options.file, "method": options.method}
    document["outputs"] = rows[-1]
    if len(rows) > 1:
        document["calls"] = rows
    document["statistics"] = statistics
    if options.json:
        print(json.dumps(document))
    else:
        _print(rows, statistics)


def _print(rows: list[list[dict[str, Any]]], statistics: dict[str, Any]) -> None:
    for call, outputs in enumerate(rows):
        if len(rows) > 1:
            print(f"call {call}")
        for index, row in enumerate(outputs):
            text = ", ".join(f"{key} {_short(value)}" for key, value in row.items())
            print(f"output {index}: {text}")
    if statistics["calls"] > 1:
        print(
            f"{statistics['calls']} calls: mean {format_time(statistics['mean_ms'])}, "
            f"first {format_time(statistics['first_ms'])}, "
            f"least {format_time(statistics['min_ms'])}"
        )


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _describe(value: Any) -> dict[str, Any]:
    if not isinstance(value, np.ndarray):
        return {"value": value if isinstance(value, (int, float, str, list)) else repr(value)}
    row: dict[str, Any] = {"dtype": str(value.dtype), "shape": list(value.shape)}
    if value.size and value.dtype.kind in "biuf":
        row["min"], row["max"] = float(value.min()), float(value.max())
        row["mean"] = float(value.mean(dtype=np.float64))
    if value.size <= 8 and value.dtype.kind in "biuf":
        row["values"] = value.tolist()
    return row


def _write(
    folder: Path, form: str, results: list[list[Any]], rows: list[list[dict[str, Any]]]
) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for call, outputs in enumerate(results):
            prefix = f"call_{call}_" if len(results) > 1 else ""
            if form == "npz":
                path = folder / f"{prefix}outputs.npz"
                arrays = {f"output_{i}": np.asarray(value) for i, value in enumerate(outputs)}
                np.savez(path, allow_pickle=False, **arrays)
            for index, value in enumerate(outputs):
                if form != "npz":
                    path = folder / f"{prefix}output_{index}.{form}"
                    _write_array(path, np.asarray(value))
                rows[call][index]["path"] = str(path)
    except OSError as error:
        raise RuntimeFailure(f"the outputs cannot be written: {error}") from error


def _write_array(path: Path, value: np.ndarray[Any, Any]) -> None:
    if path.suffix == ".bin":
        path.write_bytes(value.tobytes())
    else:
        np.save(path, value, allow_pickle=False)
