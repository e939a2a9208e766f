# SPDX-License-Identifier: BSD-3-Clause
"""Integer operators of ETX next to XNNPACK's int8, shape by shape.

Both read and write the same int8 tensors in one process, in turns; a ratio is formed within a
round. What they write may differ by one step. XNNPACK is the one that etx-backend-xnnpack is built
with, found where its build keeps it.
"""

from __future__ import annotations

import argparse
import ctypes as c
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etx_backend_xnnpack
import torch

HERE = Path(__file__).parent
KERNELS = HERE.parent / "packages" / "etx-kernels-portable"
sys.path.insert(0, str(KERNELS / "benchmarks"))

from prepared import Prepared, compiled, pack  # noqa: E402

ZERO_POINT = 3
OUTPUT = (0, -128, 127)
Call = Callable[[int], float]
Pair = tuple[Call, Call, Callable[[], int]]
"""ETX, XNNPACK, and the largest difference of what they wrote."""

LINEARS = [(1, 768, 3072), (1, 1280, 1000), (8, 768, 3072), (128, 768, 3072), (128, 3072, 768),
           (128, 384, 384), (128, 384, 1536)]  # fmt: skip
CONVOLUTIONS = [
    *[(224, 3, 32, 3, 2, 1), (224, 3, 64, 7, 2, 1), (112, 32, 16, 1, 1, 1), (112, 16, 96, 1, 1, 1)],
    *[(56, 24, 144, 1, 1, 1), (56, 144, 24, 1, 1, 1), (28, 192, 32, 1, 1, 1)],
    *[(14, 384, 64, 1, 1, 1), (14, 96, 576, 1, 1, 1), (7, 960, 160, 1, 1, 1)],
    *[(7, 320, 1280, 1, 1, 1), (56, 64, 256, 1, 1, 1), (14, 1024, 256, 1, 1, 1)],
    *[(56, 64, 64, 3, 1, 1), (28, 128, 128, 3, 1, 1), (14, 256, 256, 3, 1, 1)],
    *[(7, 512, 512, 3, 1, 1), (112, 32, 32, 3, 1, 32), (56, 144, 144, 3, 1, 144)],
    *[(14, 384, 384, 3, 1, 384), (7, 960, 960, 3, 1, 960)],
]


def built_with(folder: Path) -> list[Path]:
    """Return the build of which the installed plugin names the key, not another compiler's."""
    plugin = next(Path(etx_backend_xnnpack.__file__).parent.glob("*.so")).read_bytes()
    archives = folder.glob("*/libXNNPACK.a")
    return [a for a in archives if a.parent.name.rpartition("-")[2].encode() in plugin]


def xnnpack(folder: Path) -> c.CDLL:
    """Compile XNNPACK's side, with the threads of pthreadpool."""
    built = built_with(folder)
    trees = {name: next(folder.glob(f"{name}-*/"), None) for name in ("xnnpack", "pthreadpool")}
    fxdiv = next(folder.glob("fxdiv*/"), None)
    if not built or None in trees.values() or fxdiv is None:
        sys.exit(f"{folder} holds no build of XNNPACK that etx-backend-xnnpack has: build it here")
    pool, objects = trees["pthreadpool"], Path(tempfile.mkdtemp())
    includes = [f"-I{tree / 'include'}" for tree in (*trees.values(), fxdiv) if tree is not None]
    sources = [f"{pool}/src/{name}.c" for name in ("memory", "portable-api", "pthreads")]
    flags = ["-DPTHREADPOOL_USE_FASTPATH=0", "-DPTHREADPOOL_USE_CPUINFO=0", "-D_GNU_SOURCE=1"]
    compile_pool = ["cc", "-O2", "-fPIC", "-c", "-w", *flags, *includes, *sources]
    subprocess.run(compile_pool, check=True, cwd=objects)
    libraries = [built[0].parent / name for name in ("libXNNPACK.a", "libmicrokernels-prod.a")]
    cpuinfo = built[0].parent / "libcpuinfo.a"
    source = HERE / "native" / "xnnpack_operators.cpp"
    threads = sorted(objects.glob("*.o"))
    library = compiled(source, *includes, *threads, *libraries, cpuinfo, "-lm", "-Wl,-Bsymbolic")
    for name in ("make_linear", "make_conv"):
        getattr(library, name).restype = c.c_void_p
    library.time_operator.argtypes, library.time_operator.restype = (
        [
            c.c_void_p,
            c.c_int64,
        ],
        c.c_int64,
    )
    return library


def int8(*shape: int) -> torch.Tensor:
    """Return random numbers from all of int8."""
    return torch.randint(-128, 128, shape).to(torch.int8)


class Shape:
    """The tensors of one shape and both operators on them."""

    def __init__(self, library: c.CDLL, x: torch.Tensor, weight: torch.Tensor, out: torch.Size):
        self.library, self.x, self.weight = library, x, weight
        self.channels = weight.shape[0]
        depth = weight[0].numel()
        self.scale = torch.full((self.channels,), 1 / (64 * depth**0.5 * 64))
        self.bias = torch.randint(-9999, 9999, (self.channels,), dtype=torch.int32)
        self.sums = weight.flatten(1).sum(1).int()
        self.ours, self.theirs = torch.zeros(out, dtype=torch.int8), torch.zeros(out).char()

    def operands(self, packed: torch.Tensor) -> tuple[Any, ...]:
        """Return the first arguments of ETX's operator."""
        return self.x, packed, self.sums, self.bias, self.scale

    def pair(self, kernel: str, arguments: tuple[Any, ...], made: str, sizes: tuple[int, ...],
             threads: int) -> Pair:  # fmt: skip
        """Prepare both."""
        ours = Prepared(kernel, threads).prepare(*arguments, ZERO_POINT, *OUTPUT, self.ours)
        tensors = self.scale, self.weight, self.bias, self.x, self.theirs
        pointers = [c.c_void_p(tensor.data_ptr()) for tensor in tensors]
        operator = getattr(self.library, made)(*map(c.c_int64, sizes), *pointers, threads)
        if operator is None:
            sys.exit(f"XNNPACK refuses {made[5:]} {sizes}")

        def theirs(count: int) -> float:
            spent: int = self.library.time_operator(operator, count)
            if spent < 0:
                sys.exit(f"XNNPACK fails on {made[5:]} {sizes}")
            return spent / 1e9

        return ours, theirs, lambda: int((self.ours.int() - self.theirs.int()).abs().max())


def linear(library: c.CDLL, threads: int, m: int, k: int, n: int) -> Pair:
    """Return both sides of a linear layer."""
    shape = Shape(library, int8(m, k), int8(n, k), torch.Size((m, n)))
    arguments = shape.operands(pack(shape.weight))
    return shape.pair("etx::quantized_linear.out", arguments, "make_linear", (m, k, n), threads)


def conv(library: c.CDLL, threads: int, *sizes: int) -> Pair:
    """Return both sides of a convolution."""
    size, cin, cout, kernel, stride, groups = sizes
    pad = kernel // 2
    side = (size + 2 * pad - kernel) // stride + 1
    weight = int8(cout, kernel, kernel, cin // groups)
    shape = Shape(library, int8(1, size, size, cin), weight, torch.Size((1, side, side, cout)))
    moves: tuple[Any, ...] = [kernel] * 2, [stride] * 2, [pad] * 4, [1, 1]
    if groups == 1:
        arguments = (*shape.operands(pack(weight)), *moves, [1, 1], 1)
        return shape.pair("etx::quantized_conv.out", arguments, "make_conv", sizes, threads)
    arguments = (*shape.operands(weight.flatten(1).T.contiguous()), *moves)
    return shape.pair("etx::quantized_depthwise_conv.out", arguments, "make_conv", sizes, threads)


def least(ours: Call, theirs: Call, rounds: int, turn: float) -> dict[str, float]:
    """Time both in turns by the thread's CPU time; microseconds of the least disturbed calls."""
    count = max(1, int(turn / min(ours(1), theirs(1), ours(1), theirs(1))))
    shortest = [float("inf"), float("inf")]
    for i in range(rounds):
        for side in (i % 2, 1 - i % 2):
            begin = time.thread_time()
            (ours, theirs)[side](count)
            shortest[side] = min(shortest[side], (time.thread_time() - begin) / count)
    etx, xnnpack = (seconds * 1e6 for seconds in shortest)
    return {"etx_us": etx, "xnnpack_us": xnnpack, "speed": xnnpack / etx}


def in_turns(ours: Call, theirs: Call, rounds: int, turn: float) -> dict[str, float]:
    """Time both in turns; microseconds of a call, and the median of the rounds' ratios."""
    once = min(ours(1), theirs(1), ours(1), theirs(1))
    count = max(1, int(turn / once))
    figures: list[tuple[float, float]] = []
    for i in range(rounds):
        pair = dict.fromkeys((0, 1), 0.0)
        for side in (i % 2, 1 - i % 2):
            pair[side] = min((ours, theirs)[side](count) for _ in range(3)) / count
        figures.append((pair[0], pair[1]))
    return {
        "etx_us": statistics.median(a for a, _ in figures) * 1e6,
        "xnnpack_us": statistics.median(b for _, b in figures) * 1e6,
        "speed": statistics.median(b / a for a, b in figures),
    }


def name_of(sizes: tuple[int, ...]) -> str:
    """Return how the table calls a shape."""
    if len(sizes) == 3:
        return "linear {}x{}x{}".format(*sizes)
    size, cin, cout, kernel, stride, groups = sizes
    kind = "depthwise" if groups > 1 else "conv"
    return f"{kind} {kernel}x{kernel}{' s2' * (stride == 2)} {cin}>{cout} {size}"


def table(results: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return rows of Markdown: XNNPACK's time over ETX's."""
    threads = list(next(iter(results.values())))
    lines = [
        "| shape | " + " | ".join(f"{n} thread{'s' * (n != '1')}" for n in threads) + " |",
        "| --- |" + " --- |" * len(threads),
    ]
    for name, row in results.items():
        lines.append(f"| {name} | " + " | ".join(f"{row[n]['speed']:.2f}" for n in threads) + " |")
    means = (
        statistics.geometric_mean(row[n]["speed"] for row in results.values()) for n in threads
    )
    return "\n".join([*lines, "| geometric mean | " + " | ".join(f"{m:.2f}" for m in means) + " |"])


def main() -> None:
    """Measure, print the table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--xnnpack", type=Path, default=HERE.parent / ".build" / "xnnpack")
    parser.add_argument("--json", type=Path, default=HERE.parent / ".build" / "operators.json")
    parser.add_argument("--threads", type=int, nargs="*", choices=(1, 2), default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.02, help="seconds a turn should last")
    parser.add_argument(
        "--busy",
        action="store_true",
        help="one thread, CPU time, the least of the rounds: where others run, too",
    )
    parser.add_argument("words", nargs="*", help="only rows whose name has one of them")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    library = xnnpack(options.xnnpack.resolve())
    measure = least if options.busy else in_turns
    results: dict[str, dict[str, dict[str, float]]] = {}
    for sizes in (*LINEARS, *CONVOLUTIONS):
        name = name_of(sizes)
        if options.words and not any(word in name for word in options.words):
            continue
        results[name] = {}
        for threads in [1] if options.busy else options.threads:
            make = linear if len(sizes) == 3 else conv
            ours, theirs, difference = make(library, threads, *sizes)
            results[name][str(threads)] = measure(ours, theirs, options.rounds, options.turn)
            if difference() > 1:
                sys.exit(f"{name}: results differ by {difference()} steps")
    if not results:
        sys.exit("no shape has one of these words")
    options.json.write_text(json.dumps(results, indent=2))
    print(table(results), flush=True)


if __name__ == "__main__":
    main()
