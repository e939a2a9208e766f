# SPDX-License-Identifier: BSD-3-Clause
"""`etx run`: call a method, print, write and compare what it returns."""

from __future__ import annotations

import argparse
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema.files import check_writable, write_atomically
from etx_schema.outputs import OutputFile, refuse_clashes

from etx_runtime import bits
from etx_runtime.commands.expected import compare, read_expected
from etx_runtime.commands.measure import (
    Progress,
    format_bytes,
    format_time,
    measure_load,
    time_call,
)
from etx_runtime.commands.samples import prepare_calls
from etx_runtime.commands.selection import select_values
from etx_runtime.commands.state_file import check_can_save, load_state, save_state, write_npz
from etx_runtime.errors import InputError, RuntimeFailure
from etx_runtime.recorder import Recorder
from etx_runtime.runtime import Method
from etx_runtime.threads import get_num_threads, set_num_threads
from etx_runtime.values import ValueInfo

KEPT = ("outputs", "all")
"""Values that have a file of their own."""


def run(options: argparse.Namespace) -> int:
    """Run the method as often as there are sets of inputs, with the same state.

    Return 1 when an output is not as expected.
    """
    if options.threads:
        set_num_threads(options.threads)
    recorder = _recorder(options)
    method, load_ms = measure_load(
        options.file, options.data, options.method, options.mmap, recorder
    )
    infos = method.outputs
    calls = prepare_calls(method, options.inputs)
    expected = read_expected(options.expect, infos, len(calls)) if options.expect else []
    method.seed(options.inputs.seed)
    if options.load_state:
        load_state(method, options.load_state)
    if options.save_state:
        check_can_save(method, options.save_state)
    if options.output_dir:
        _check_paths(options, len(calls), len(infos))
    try:
        results, times = _execute(method, calls, options.iterations, recorder)
    finally:
        _save(recorder, options)
    if options.save_state:
        save_state(method, options.save_state)
    rows = [
        [_describe(value, info) for value, info in zip(outputs, infos, strict=True)]
        for outputs in results
    ]
    if options.output_dir:
        _write(Path(options.output_dir), options.format, results, rows)
    compared = [
        compare(outputs, infos, reference, options.atol, options.rtol)
        for outputs, reference in zip(results[-len(expected) :], expected, strict=False)
    ]
    document: dict[str, Any] = {"file": options.file, "method": method.metadata.name()}
    document["outputs"] = rows[-1]
    if len(rows) > 1:
        document["calls"] = rows
    if expected:
        document["compared"] = compared
    document["statistics"] = _statistics(method, load_ms, times)
    if options.json:
        print(json.dumps(document))
    else:
        _print(rows, infos, document["statistics"])
        _print_compared(compared, len(results), options)
    return 0 if all(row["matches"] for call in compared for row in call) else 1


def _recorder(options: argparse.Namespace) -> Recorder | None:
    if options.etdump_threads and options.values != "none":
        raise InputError(
            f"--etdump-threads records times only, got --values {options.values} beside it; "
            "record the values in a run of their own"
        )
    if options.etdump and options.etdump_threads:
        return Recorder(threads=True)
    if options.etdump:
        selected = select_values(options.values, options.file, options.method)
        if options.debug_buffer is None and selected.values in KEPT:
            options.debug_buffer = OutputFile(str(Path(options.etdump).with_suffix(".bin")))
            refuse_clashes(vars(options).values())
        return Recorder(selected.values, instructions=selected.instructions)
    if options.values != "none" or options.debug_buffer or options.etdump_threads:
        raise InputError(
            "--values, --debug-buffer and --etdump-threads record with --etdump, which is not given"
        )
    return None


def _save(recorder: Recorder | None, options: argparse.Namespace) -> None:
    """Write what was recorded, also of a call that failed."""
    if recorder is None:
        return
    recorder.save(options.etdump, options.debug_buffer if recorder.values in KEPT else None)


def _execute(
    method: Method, calls: list[list[Any]], iterations: int, recorder: Recorder | None
) -> tuple[list[list[Any]], list[float]]:
    results: list[list[Any]] = []
    times: list[float] = []
    progress = Progress()
    try:
        for inputs in calls:
            for _ in range(iterations):
                outputs, milliseconds = time_call(method, inputs, recorder=recorder)
                times.append(milliseconds)
                progress.show(len(times), len(calls) * iterations)
            results.append(outputs)
    finally:
        progress.close()
    return results, times


def _statistics(method: Method, load_ms: float, times: list[float]) -> dict[str, Any]:
    return {
        "load_ms": load_ms,
        "calls": len(times),
        "first_ms": times[0],
        "mean_ms": sum(times) / len(times),
        "min_ms": min(times),
        "max_ms": max(times),
        "threads": get_num_threads(),
        "arena_bytes": method.memory_bytes(),
    }


def _print(
    rows: list[list[dict[str, Any]]], infos: tuple[ValueInfo, ...], statistics: dict[str, Any]
) -> None:
    for call, outputs in enumerate(rows):
        if len(rows) > 1:
            print(f"call {call}")
        for index, (row, info) in enumerate(zip(outputs, infos, strict=True)):
            print(f"output {index}{_name(info)}: {_text(row)}")
    count, arenas = statistics["calls"], statistics["arena_bytes"]
    times = [f"first {format_time(statistics['first_ms'])}"]
    if count > 1:
        times += [
            f"{name} {format_time(statistics[name + '_ms'])}" for name in ("mean", "min", "max")
        ]
    print(
        f"{count} call{'s' * (count > 1)}: {', '.join(times)}; "
        f"load {format_time(statistics['load_ms'])}; arena {format_bytes(arenas['planned'])}; "
        f"{statistics['threads']} thread{'s' * (statistics['threads'] > 1)}"
    )


def _name(info: ValueInfo) -> str:
    path = info.name.removeprefix("output")
    return f" {path}" if path and not path.strip("[]").isdigit() else ""


def _text(row: dict[str, Any]) -> str:
    return ", ".join(f"{key} {_short(value)}" for key, value in row.items())


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_short(item) for item in value) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_compared(
    compared: list[list[dict[str, Any]]], calls: int, options: argparse.Namespace
) -> None:
    for position, rows in enumerate(compared):
        call = f"call {calls - len(compared) + position}, " if calls > 1 else ""
        for row in rows:
            label = f"{call}output {row['output']}"
            off = row.get("largest_difference", 0.0)
            if row["matches"]:
                print(f"{label} is as expected: largest difference {off:.3g}")
            else:
                print(f"{label} is not as expected: {row['reason']}")
    if not all(row["matches"] for rows in compared for row in rows):
        print(f"allowed: {options.atol:g} + {options.rtol:g} of the expected value")


def _describe(value: Any, info: ValueInfo) -> dict[str, Any]:
    if info.kind != "tensor" or value is None:
        return {"value": value if isinstance(value, (int, float, str, list)) else repr(value)}
    array = bits.as_numpy(value)
    numbers = bits.as_numbers(value, info.dtype or "")
    row: dict[str, Any] = {"dtype": info.dtype, "shape": list(array.shape)}
    if numbers is not None and numbers.size:
        row["min"], row["max"] = float(numbers.min()), float(numbers.max())
        with np.errstate(all="ignore"):
            row["mean"] = float(numbers.mean(dtype=np.float64))
        bad = int(numbers.size - np.isfinite(numbers).sum())
        if bad:
            row["not_finite"] = bad
    if numbers is not None and numbers.size <= 8:
        row["values"] = numbers.tolist()
    return row


def _check_paths(options: argparse.Namespace, calls: int, outputs: int) -> None:
    for call in range(calls):
        for index in range(outputs):
            path = _path(
                Path(options.output_dir), options.format, call if calls > 1 else None, index
            )
            if path.exists():
                check_writable(path)


def _path(folder: Path, form: str, call: int | None, index: int) -> Path:
    prefix = "" if call is None else f"call_{call}_"
    return folder / (f"{prefix}outputs.npz" if form == "npz" else f"{prefix}output_{index}.{form}")


def _write(
    folder: Path, form: str, results: list[list[Any]], rows: list[list[dict[str, Any]]]
) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for call, outputs in enumerate(results):
            number = call if len(results) > 1 else None
            arrays = [bits.as_numpy(value) for value in outputs]
            if form == "npz":
                named = {f"output_{i}": array for i, array in enumerate(arrays)}
                write_npz(_path(folder, form, number, 0), named)
            for index, array in enumerate(arrays):
                path = _path(folder, form, number, index)
                if form != "npz":
                    write_atomically(path, [_array_bytes(form, array)])
                rows[call][index]["path"] = str(path)
    except OSError as error:
        raise RuntimeFailure(f"the outputs cannot be written: {error}") from error
    except ValueError as error:
        raise RuntimeFailure(f"an output has no form as .{form}: {error}") from error


def _array_bytes(form: str, value: np.ndarray[Any, Any]) -> bytes | memoryview:
    if form == "bin":
        return value.tobytes()
    buffer = BytesIO()
    np.save(buffer, value, allow_pickle=False)
    return buffer.getbuffer()
