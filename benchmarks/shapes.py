# SPDX-License-Identifier: BSD-3-Clause
"""Random shapes through the compiler and the runtime, next to onnxruntime: finds cliffs.

python benchmarks/shapes.py [--count 330] [--seed 0] [--only conv pool] [--json FILE] [--page FILE]

float32, one thread, the least time of calls in turns. Results must agree. A case is a cliff when it
takes more than 1.5 times onnxruntime's time, or more scratch than twice its tensors.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from etx_exir import to_edge_transform_and_lower
from etx_runtime import Runtime, set_num_threads
from shape_cases import FAMILIES, Drawn

TURN = 0.004
LEAST_US = 20.0
"""Below, calls from Python are most of both times."""
SLOW, SCRATCH = 1.5, 2.0
TOLERANCE = 2e-4
PAGE = """# Shapes next to onnxruntime, {level}

`python3 noxfile.py -s shapes -- --count {count} --seed {seed} --page docs/{name}` draws
convolutions, products, pools, norms, softmaxes and reductions of odd sizes, runs each through the
compiler and the runtime with ETX's own kernels and in onnxruntime {version}, in turns, one thread,
float32, and compares the results: here on {date}, on a processor whose widest
instructions are {level}. A ratio is ETX's least time over onnxruntime's; scratch is what a kernel
takes beside planned memory, over the bytes of the case's tensors. Cases of less than {least:.0f} µs
in onnxruntime are compared, not timed.

{table}

The ten slowest next to onnxruntime, and the three with most scratch:

{worst}
"""


@dataclass
class Row:
    """A case: the µs of both sides, ETX's scratch and the bytes of all tensors."""

    family: str
    name: str
    etx_us: float
    onnxruntime_us: float
    scratch: int
    tensors: int

    @property
    def ratio(self) -> float:
        """Return ETX's time over onnxruntime's."""
        return self.etx_us / self.onnxruntime_us

    @property
    def share(self) -> float:
        """Return scratch over the bytes of the tensors."""
        return self.scratch / self.tensors

    @property
    def timed(self) -> bool:
        """Tell whether the case is large enough for its ratio to mean something."""
        return self.onnxruntime_us >= LEAST_US

    def cliff(self) -> bool:
        """Tell whether the case is too slow, or its scratch too large."""
        return (self.timed and self.ratio > SLOW) or (self.share > SCRATCH and self.scratch > 65536)

    def cells(self) -> str:
        """Return a line of the table of cases."""
        return (
            f"| {self.name} | {self.etx_us:.0f} | {self.onnxruntime_us:.0f} "
            f"| {self.ratio:.2f} | {self.share:.2f} |"
        )


def session_of(model: bytes) -> onnxruntime.InferenceSession:
    """Return onnxruntime's session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])


def bound(session: onnxruntime.InferenceSession, inputs: Sequence[np.ndarray]) -> Any:
    """Bind the inputs where they lie, and the output once: a call then copies nothing."""
    binding = session.io_binding()
    for given, x in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_cpu_input(given.name, x)
    for made in session.get_outputs():
        binding.bind_output(made.name)
    return binding


def in_turns(method: Any, arrays: list[Any], theirs: Callable[[], Any], rounds: int) -> list[float]:
    """Return the least µs of an execution of each, measured in turns.

    ETX's is timed in C++, without the copy of its output to an array; onnxruntime's is bound.
    """
    theirs()
    begin = time.perf_counter()
    theirs()
    count = max(1, int(TURN / (time.perf_counter() - begin)))
    shortest = [float("inf"), float("inf")]
    for _ in range(rounds):
        shortest[0] = min(shortest[0], *method.time_executions(arrays, count))
        for _ in range(count):
            begin = time.perf_counter()
            theirs()
            shortest[1] = min(shortest[1], (time.perf_counter() - begin) * 1e9)
    return [nanoseconds / 1e3 for nanoseconds in shortest]


def measure(family: str, drawn: Drawn, rounds: int) -> Row:
    """Compile the case, compare its result with onnxruntime's, time both."""
    module, inputs = drawn.module.eval(), drawn.inputs
    exported = torch.export.export(module, inputs)
    program = to_edge_transform_and_lower(exported).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    arrays = [np.ascontiguousarray(x.numpy()) for x in inputs]
    call = method.flat_caller(borrow=True)
    session = session_of(drawn.onnx(module))
    binding = bound(session, arrays)
    session.run_with_iobinding(binding)
    ours, theirs = call(*arrays), binding.copy_outputs_to_cpu()[0]
    limit = TOLERANCE * max(drawn.magnitude, float(np.abs(theirs).max()))
    if ours.shape != theirs.shape or float(np.abs(ours - theirs).max()) > limit:
        sys.exit(f"{family} {drawn.name}: the results differ")
    times = in_turns(method, arrays, lambda: session.run_with_iobinding(binding), rounds)
    weights = sum(p.numel() * 4 for p in module.parameters())
    tensors = weights + ours.nbytes + sum(x.nbytes for x in arrays)
    return Row(family, drawn.name, *times, method.memory_bytes()["temp"], tensors)


def table(rows: Sequence[Row]) -> str:
    """Return a line for each family: count, mean ratio, cliffs."""
    lines = ["| | cases | timed | geometric mean | worst | cliffs |", "| --- |" + " ---: |" * 5]
    for family in FAMILIES:
        own = [row for row in rows if row.family == family]
        ratios = [row.ratio for row in own if row.timed]
        if not own:
            continue
        mean = f"{statistics.geometric_mean(ratios):.2f}" if ratios else ""
        worst = f"{max(ratios):.2f}" if ratios else ""
        cliffs = sum(row.cliff() for row in own)
        lines.append(f"| {family} | {len(own)} | {len(ratios)} | {mean} | {worst} | {cliffs} |")
    return "\n".join(lines)


def worst(rows: Sequence[Row]) -> str:
    """Return the table of the slowest ten and the three with most scratch."""
    slowest = sorted((r for r in rows if r.timed), key=lambda row: -row.ratio)[:10]
    largest = sorted(rows, key=lambda row: -row.share)[:3]
    chosen = dict.fromkeys(row.cells() for row in (*slowest, *largest))
    head = "| case | ETX, µs | onnxruntime, µs | ratio | scratch |\n| --- |" + " ---: |" * 4
    return "\n".join([head, *chosen])


def level_of(capability: str) -> str:
    return capability.replace("AVX512", "AVX-512")


def main() -> int:
    """Measure, print, write; fail where there is a cliff."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=330)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write all cases")
    parser.add_argument("--page", type=Path, help="write the page here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    set_num_threads(1)
    rows: list[Row] = []
    for i in range(options.count):
        family = options.only[i % len(options.only)]
        seed = options.seed * 100_000 + i
        torch.manual_seed(seed)
        row = measure(family, FAMILIES[family](random.Random(seed)), options.rounds)
        rows.append(row)
        mark = "  <--" if row.cliff() else ""
        print(f"{i + 1}/{options.count} {row.cells()}{mark}", flush=True)
    print(f"seed {options.seed}\n\n{table(rows)}\n\n{worst(rows)}")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if options.page:
        page = PAGE.format(
            count=options.count,
            seed=options.seed,
            name=options.page.name,
            level=level_of(torch.backends.cpu.get_cpu_capability()),
            version=onnxruntime.__version__,
            date=date.today().isoformat(),
            least=LEAST_US,
            table=table(rows),
            worst=worst(rows),
        )
        options.page.write_text(page)
    return any(row.cliff() for row in rows)


if __name__ == "__main__":
    sys.exit(main())
