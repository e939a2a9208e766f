# SPDX-License-Identifier: BSD-3-Clause
"""Times models of int8 layers by two rules for sums: float32, and the fixed point of Cortex-M.

python benchmarks/fixed_point.py MODEL.pte… [--variant PLUGIN.so] [--rounds N]

Builds the plugin with `fixed_point.h` in its loops for AVX2 (`--variant`: built before),
loads each model with it and with the installed plugin, in a process each, and calls them in turns,
on one thread. Prints the medians of times, and how the outputs differ in steps of their last
quantization.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import etx_kernels_portable
import numpy as np

PACKAGE = Path(__file__).resolve().parents[1]
WORKER = """
import sys, time
import etx_runtime, numpy as np
etx_runtime.set_num_threads(1)
run = etx_runtime.Runtime.get().load_program(sys.argv[1]).load_method("forward")
draw = np.random.default_rng(0)
sizes = [run.metadata.input_tensor_meta(i).sizes() for i in range(run.metadata.num_inputs())]
x = [draw.standard_normal(size).astype(np.float32) for size in sizes]
np.save(sys.argv[2], run.execute(x)[0])
for line in sys.stdin:
    start = time.perf_counter_ns()
    for _ in range(int(line)):
        run.execute(x)
    print((time.perf_counter_ns() - start) / int(line), flush=True)
"""


def built(folder: Path) -> Path:
    """Build the plugin with the rule of `fixed_point.h`; return its path."""
    header = PACKAGE / "benchmarks" / "fixed_point.h"
    flags = f"-DCMAKE_CXX_FLAGS=-DETX_FIXED_POINT='\"{header}\"' -Wno-error"
    subprocess.run(["cmake", "-S", PACKAGE, "-B", folder, "-G", "Ninja", flags], check=True)
    subprocess.run(["cmake", "--build", folder, "-j2"], check=True)
    return folder / "etx_kernels_portable.so"


class Worker:
    """A model in a process of its own, with the kernels of one plugin."""

    def __init__(self, plugin: Path, model: Path, output: Path) -> None:
        environment = {**os.environ, "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": str(plugin)}
        command = [sys.executable, "-c", WORKER, str(model), str(output)]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.times: list[float] = []
        self.measure(1)
        self.output = np.load(output)

    def measure(self, calls: int) -> None:
        """Call the model `calls` times and keep the mean in nanoseconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        self.times.append(float(self.process.stdout.readline()))


def compare(model: Path, plugins: dict[str, Path], rounds: int, folder: Path) -> None:
    """Print the times of `model` by each rule, and how its outputs differ."""
    workers = [Worker(path, model, folder / f"{name}.npy") for name, path in plugins.items()]
    for _ in range(rounds):
        for worker in workers:
            worker.measure(3)
    floats, fixed = (float(np.median(worker.times[1:])) / 1e6 for worker in workers)
    ratios = [b / a for a, b in zip(*(worker.times[1:] for worker in workers), strict=True)]
    a, b = (worker.output.astype(np.float64).ravel() for worker in workers)
    levels = np.diff(np.unique(np.concatenate([a, b])))
    steps = np.abs(a - b) / (levels.min() if levels.size else 1)
    print(
        f"{model}: float32 {floats:.2f} ms, fixed point {fixed:.2f} ms,"
        f" ratio {np.median(ratios):.3f}; {np.mean(steps > 0.5):.1%} of {a.size} outputs differ,"
        f" by at most {steps.max():.0f} steps"
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--variant", type=Path, help="the plugin with the rule, built before")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        variant = options.variant or built(Path(folder) / "build")
        plugins = {"float32": Path(etx_kernels_portable.library_path()), "fixed": variant}
        for model in options.models:
            compare(model, plugins, options.rounds, Path(folder))


if __name__ == "__main__":
    main()
