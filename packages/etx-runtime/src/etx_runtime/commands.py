# SPDX-License-Identifier: BSD-3-Clause
"""The commands `etx run` and `etx bench`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from etx_runtime.errors import InputError, RuntimeFailure
from etx_runtime.threads import get_num_threads, set_num_threads


def register(subparsers: Any) -> None:
    """Add the commands to `etx`."""
    run = subparsers.add_parser(
        "run",
        help="run a .pte file",
        description="Run a method of a .pte file and print its outputs.",
        epilog="example: etx run model.pte --input ids.npy --input mask.npy --output-dir out",
    )
    _add_model(run)
    run.add_argument("--output-dir", metavar="DIR", help="write output_0.npy, … there")
    run.set_defaults(run=_run)
    bench = subparsers.add_parser(
        "bench",
        help="measure a .pte file",
        description="Measure load time, latency and memory of a method.",
        epilog="example: etx bench model.pte --shape 1,3,224,224 --iterations 50 --threads 1",
    )
    _add_model(bench)
    bench.add_argument("--iterations", type=_positive, default=20, metavar="N")
    bench.add_argument("--warmup", type=int, default=3, metavar="N")
    bench.add_argument("--operators", action="store_true", help="also times by operator")
    bench.set_defaults(run=_bench)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a .pte file")
    parser.add_argument("--method", default="forward", metavar="NAME")
    parser.add_argument(
        "--data", action="append", default=[], metavar="FILE", help="a .ptd file with weights"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help=".npy, .npz or raw .bin; once for each array input",
    )
    source.add_argument("--random", action="store_true", help="random inputs (the default)")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs")
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        default=[],
        metavar="1,3,224",
        help="of random inputs, once for each array input; the largest otherwise",
    )
    parser.add_argument("--threads", type=_positive, metavar="N")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _inputs(options: argparse.Namespace, method: Any) -> list[Any]:
    from etx_runtime.samples import random_inputs, read_inputs

    if options.input:
        if options.shape:
            raise InputError("--shape is for random inputs; the files of --input have their own")
        return read_inputs(method, options.input)
    return random_inputs(method, options.seed, options.shape)


def _load(options: argparse.Namespace) -> tuple[Any, float]:
    from etx_runtime.measure import measure_load

    if options.threads:
        set_num_threads(options.threads)
    return measure_load(options.file, options.data, options.method)


def _run(options: argparse.Namespace) -> None:
    import numpy as np

    method, _ = _load(options)
    outputs = method.execute(_inputs(options, method))
    rows = [_describe(value) for value in outputs]
    if options.output_dir:
        folder = Path(options.output_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for index, value in enumerate(outputs):
                path = folder / f"output_{index}.npy"
                np.save(path, np.asarray(value), allow_pickle=False)
                rows[index]["path"] = str(path)
        except OSError as error:
            raise RuntimeFailure(f"the outputs cannot be written: {error}") from error
    if options.json:
        print(json.dumps({"file": options.file, "method": options.method, "outputs": rows}))
        return
    for index, row in enumerate(rows):
        print(f"output {index}: " + ", ".join(f"{key} {value}" for key, value in row.items()))


def _describe(value: Any) -> dict[str, Any]:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return {"value": value if isinstance(value, (int, float, str, list)) else repr(value)}
    row: dict[str, Any] = {"dtype": str(value.dtype), "shape": list(value.shape)}
    if value.size and value.dtype.kind in "biuf":
        row["min"], row["max"] = float(value.min()), float(value.max())
        row["mean"] = float(value.mean(dtype=np.float64))
    if value.size <= 8 and value.dtype.kind in "biuf":
        row["values"] = value.tolist()
    return row


def _bench(options: argparse.Namespace) -> None:
    from etx_runtime.measure import measure_latency, operator_times, resident_bytes, show_progress

    method, load_ms = _load(options)
    inputs = _inputs(options, method)
    latency = measure_latency(method, inputs, options.iterations, options.warmup, show_progress)
    row: dict[str, Any] = {
        "file": options.file,
        "method": options.method,
        "file_bytes": Path(options.file).stat().st_size,
        "threads": get_num_threads(),
        "iterations": options.iterations,
        "load_ms": load_ms,
        **latency,
        "arena_bytes": method.memory_bytes(),
        "resident_bytes": resident_bytes(),
    }
    if options.operators:
        row["operators_ms"] = operator_times(method, inputs)
    if options.json:
        print(json.dumps(row))
        return
    arena = row["arena_bytes"]
    print(f"{options.file}: {row['file_bytes'] / 1e6:.2f} MB, {row['threads']} threads")
    print(f"load    {load_ms:10.3f} ms")
    print(f"first   {row['first_ms']:10.3f} ms")
    print(f"median  {row['median_ms']:10.3f} ms of {options.iterations}")
    print(f"p90     {row['p90_ms']:10.3f} ms")
    print(f"arena   {sum(arena.values()) / 1e6:10.3f} MB (planned {arena['planned'] / 1e6:.3f})")
    if row["resident_bytes"] is not None:
        print(f"process {row['resident_bytes'] / 1e6:10.3f} MB resident")
    for name, milliseconds in row.get("operators_ms", {}).items():
        print(f"  {milliseconds:10.3f} ms  {name}")
