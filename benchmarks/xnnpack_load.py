# SPDX-License-Identifier: BSD-3-Clause
"""What loading a program for XNNPACK and its first call cost, here and in ExecuTorch's runtime.

usage: xnnpack_load.py PROGRAM [--turns N] [--runners etx first second executorch]

Each runner is a process of its own, in turns: `etx` packs into memory, `first` into an empty folder
of files, `second` maps these, `executorch` needs its package. Prints medians: ms of CPU and of
time for load and first call, and in MB the peak of resident memory above what the process held
before, and its parts after the call: memory of its own, and mapped files.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

RUNNERS = ("etx", "first", "second", "executorch")
COLUMNS = ("cpu_ms", "load_cpu_ms", "wall_ms", "peak_mb", "own_mb", "files_mb")


def memory() -> dict[str, int]:
    rows = [row.split() for row in Path("/proc/self/status").read_text().splitlines()]
    return {row[0]: int(row[1]) / 1024 for row in rows if row[0].startswith(("VmHWM", "Rss"))}


def etx(path: str) -> tuple[Any, Any]:
    import etx_runtime

    etx_runtime.set_num_threads(1)
    runtime = etx_runtime.Runtime.get()

    def load() -> Any:
        return runtime.load_program(path).load_method("forward")

    return load, lambda method, inputs: method.execute(inputs)


def executorch(path: str) -> tuple[Any, Any]:
    import torch
    from executorch.runtime import Runtime

    torch.set_num_threads(1)
    runtime = Runtime.get()

    def load() -> Any:
        return runtime.load_program(Path(path)).load_method("forward")

    def run(method: Any, inputs: list[np.ndarray]) -> Any:
        return method.execute([torch.from_numpy(x) for x in inputs])

    return load, run


def inputs_of(path: str) -> list[np.ndarray]:
    """Return inputs of ones, in shapes and dtypes that the file states."""
    from etx_schema import read_pte

    plan = read_pte(path).program.execution_plan[0]
    tensors = [plan.values[i].val for i in plan.inputs]
    types = {"FLOAT": "f4", "LONG": "i8", "INT": "i4", "CHAR": "i1", "BOOL": "?"}
    return [np.ones(t.sizes, types[t.scalar_type.name]) for t in tensors]


def work(runner: str, path: str) -> None:
    load, run = (executorch if runner == "executorch" else etx)(path)
    inputs = inputs_of(path)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, cpu, start = memory(), time.process_time(), time.perf_counter()
    method = load()
    loaded = time.process_time()
    run(method, inputs)
    end_cpu, end, after = time.process_time(), time.perf_counter(), memory()
    found = {
        "cpu_ms": 1000 * (end_cpu - cpu),
        "load_cpu_ms": 1000 * (loaded - cpu),
        "wall_ms": 1000 * (end - start),
        "peak_mb": after["VmHWM:"] - before["VmHWM:"],
        "own_mb": after["RssAnon:"] - before["RssAnon:"],
        "files_mb": after["RssFile:"] - before["RssFile:"],
    }
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--runners", nargs="*", choices=RUNNERS, default=list(RUNNERS))
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in options.runners}
    folder = tempfile.mkdtemp(prefix="etx-weights-")
    for _ in range(options.turns):
        for name in options.runners:
            env = dict(os.environ)
            env.pop("ETX_XNNPACK_WEIGHT_CACHE", None)
            if name == "first":
                shutil.rmtree(folder)
            if name in ("first", "second"):
                env["ETX_XNNPACK_WEIGHT_CACHE"] = folder
            command = [sys.executable, "-W", "ignore", __file__, "--work", name, options.program]
            out = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout
            found[name].append(json.loads(out.splitlines()[-1]))
    shutil.rmtree(folder, ignore_errors=True)
    print("| |", " | ".join(COLUMNS), "|\n| --- |", " | ".join("---:" for _ in COLUMNS), "|")
    for name, rows in found.items():
        cells = [f"{statistics.median(row[column] for row in rows):.0f}" for column in COLUMNS]
        print(f"| {name} |", " | ".join(cells), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
    else:
        main()
