# SPDX-License-Identifier: BSD-3-Clause
"""A process of ``footprint.py``: Python, NumPy and one runtime.

usage: footprint_worker.py RUNTIME THREADS INPUTS.npz FILE...

Imports the runtime, loads each file, calls it once, then repeatedly, and prints one line of JSON:
milliseconds of each step, nanoseconds of a call of each file, kilobytes after each step as the
kernel accounts for them.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

TURN_NS = 0.3e9
KEYS = ("Rss", "Pss", "Anonymous")


class Etx:
    """ETX with its portable kernels."""

    def __init__(self, threads: int) -> None:
        from etx_runtime import Runtime, set_num_threads

        set_num_threads(threads)
        self.runtime = Runtime.get()

    def load(self, path: str, inputs: list[np.ndarray]) -> None:
        self.inputs = inputs
        self.call = self.runtime.load_program(path).load_method("forward").flat_caller()

    def run(self) -> None:
        self.call(*self.inputs)


class ExecuTorch:
    """ExecuTorch with the kernels of its wheel, no delegate."""

    def __init__(self, threads: int) -> None:
        from executorch.extension.pybindings.portable_lib import _unsafe_reset_threadpool
        from executorch.runtime import Runtime

        _unsafe_reset_threadpool(threads)
        self.runtime = Runtime.get()

    def load(self, path: str, inputs: list[np.ndarray]) -> None:
        import torch

        self.inputs = [torch.from_numpy(x) for x in inputs]
        self.method = self.runtime.load_program(path).load_method("forward")

    def run(self) -> None:
        self.method.execute(self.inputs)


class LiteRt:
    """LiteRT with its own kernels, no delegate."""

    resolver = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"

    def __init__(self, threads: int) -> None:
        from ai_edge_litert import interpreter

        self.module, self.threads = interpreter, threads

    def load(self, path: str, inputs: list[np.ndarray]) -> None:
        resolver = self.module.OpResolverType[self.resolver]
        self.interpreter = self.module.Interpreter(
            path, experimental_op_resolver_type=resolver, num_threads=self.threads
        )
        self.interpreter.allocate_tensors()
        details = self.interpreter.get_signature_runner().get_input_details()
        named = [details[name] for name in sorted(details)]
        for detail, x in zip(named, inputs, strict=True):
            self.interpreter.set_tensor(detail["index"], x.astype(detail["dtype"]))

    def run(self) -> None:
        self.interpreter.invoke()


class LiteRtXnnpack(LiteRt):
    """LiteRT as it comes, with XNNPACK."""

    resolver = "AUTO"


RUNTIMES: dict[str, Any] = {
    "etx": Etx,
    "executorch": ExecuTorch,
    "litert": LiteRt,
    "litert_xnnpack": LiteRtXnnpack,
}


def resident() -> dict[str, int]:
    """Return the kilobytes of this process, and the most it ever had."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return {**{key: sizes[key] for key in KEYS}, "Peak": peak}


def timed(function: Any, *arguments: Any) -> tuple[Any, float]:
    """Call, and return the result and the nanoseconds that it took."""
    begin = time.perf_counter_ns()
    result = function(*arguments)
    return result, time.perf_counter_ns() - begin


def repeat(run: Any, count: int) -> None:
    for _ in range(count):
        run()


def steady(run: Any) -> float:
    """Return the median of a call; short calls are timed by the hundred."""
    once = min(timed(run)[1] for _ in range(3))
    count = 100 if once < 1e5 else 1
    turns = max(1, min(1000, int(TURN_NS / (once * count))))
    return statistics.median(timed(repeat, run, count)[1] / count for _ in range(turns))


def main(name: str, threads: int, inputs: str, files: list[str]) -> None:
    """Take the steps."""
    with np.load(inputs) as stored:
        arrays = [stored[key] for key in stored.files]
    sizes, times, calls = {"start": resident()}, {}, []
    runtime, times["import"] = timed(RUNTIMES[name], threads)
    sizes["import"] = resident()
    for path in files:
        _, times["load"] = timed(runtime.load, path, arrays)
        sizes["load"] = resident()
        _, times["first"] = timed(runtime.run)
        sizes["first"] = resident()
        calls.append(steady(runtime.run) if times["first"] < 5e9 else times["first"])
    milliseconds = {step: value / 1e6 for step, value in times.items()}
    print(json.dumps({"ms": milliseconds, "call_ns": calls, "kb": sizes}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
