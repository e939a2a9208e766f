# SPDX-License-Identifier: BSD-3-Clause
"""Times int8 and int4 kernels on shapes of common models against the float32 ones.

python benchmarks/integer.py [words…]   words: only rows whose name has one of them

One thread. `peak` is the share of what a loop of dot products in registers does, of words where the
processor has none of bytes; `float` how many times faster than this library's float32; `memory`,
of one row, the share of what a loop that only reads gets of the weight a second.
"""

from __future__ import annotations

import argparse
import ctypes as c
import time
from collections.abc import Callable
from typing import Any

import torch
from prepared import FOLDER, Prepared, compiled, pack, pack_groups, pack_int4

SECONDS = 0.2
INF = float("inf")
OUTPUT = (0, -128, 127)
GROUP = 32


def limits() -> tuple[float, float]:
    """Return multiplications and additions of int8, and bytes of memory read, a second."""
    library = compiled(FOLDER / "peak.cpp", "-march=native")
    library.peak.restype = library.bandwidth.restype = c.c_double
    return float(library.peak(500)), float(library.bandwidth(c.c_int64(1 << 28), 5))


def time_of(name: str, *args: Any) -> float:
    """Return the shortest of many calls: the least disturbed one."""
    call = Prepared(name).prepare(*args)
    call()
    shortest, until = 1e9, time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        begin = time.thread_time()
        call()
        shortest = min(shortest, time.thread_time() - begin)
    return shortest


def int8(*shape: int) -> torch.Tensor:
    """Return random numbers from all of int8."""
    return torch.randint(-128, 128, shape).to(torch.int8)


def linears(m: int, k: int, n: int) -> tuple[float, dict[str, float]]:
    """Return the operations of a linear layer and the seconds of each kernel that computes it."""
    w, small = int8(n, k), torch.randint(-8, 8, (n, k)).to(torch.int8)
    sums, scales = w.sum(1).int(), torch.full((n,), 1e-3)
    x, y = torch.randn(m, k), torch.empty(m, n)
    groups = pack_groups(small.view(n, -1, GROUP).sum(2).T.int())
    q = int8(m, k), pack(w), sums, sums, scales, 3, *OUTPUT, int8(m, n)
    dynamic = x, pack(w), sums, scales, None, -INF, INF, y
    ones = torch.ones(groups.shape, dtype=torch.bfloat16)
    int4 = x, pack_int4(small), groups, ones, None, GROUP, n, -INF, INF, y
    only = x, pack(w), scales, None, -INF, INF, y
    return 2.0 * m * k * n, {
        "float32": time_of("aten::linear.out", x, torch.randn(n, k), torch.randn(n), y),
        "int8": time_of("etx::quantized_linear.out", *q),
        "dynamic int8": time_of("etx::dynamic_linear.out", *dynamic),
        "dynamic int4": time_of("etx::dynamic_linear_int4.out", *int4),
        "int8 weight": time_of("etx::weight_only_linear.out", *only),
    }


def convolutions(
    size: int, cin: int, cout: int, kernel: int, stride: int, groups: int
) -> tuple[float, dict[str, float]]:
    """Return the operations of a convolution and the seconds in float32 and int8."""
    pad, out = kernel // 2, (size + 2 * (kernel // 2) - kernel) // stride + 1
    x, w = torch.randn(1, cin, size, size), torch.randn(cout, cin // groups, kernel, kernel)
    lists = [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups
    y = torch.empty(1, cout, out, out)
    seconds = {"float32": time_of("aten::convolution.out", x, w, torch.randn(cout), *lists, y)}
    weight = int8(cout, kernel, kernel, cin // groups)
    sums, scales = weight.flatten(1).sum(1).int(), torch.full((cout,), 1e-3)
    moves = [kernel] * 2, [stride] * 2, [pad] * 4, [1, 1]
    results = 3, *OUTPUT, int8(1, out, out, cout)
    image = int8(1, size, size, cin)
    if groups == 1:
        operands = image, pack(weight), sums, sums, scales, *moves, [1, 1], 1, *results
        seconds["int8"] = time_of("etx::quantized_conv.out", *operands)
    else:
        plain = weight.flatten(1).T.contiguous()
        operands = image, plain, sums, sums, scales, *moves, *results
        seconds["int8"] = time_of("etx::quantized_depthwise_conv.out", *operands)
    return 2.0 * y.numel() * w[0].numel(), seconds


LINEARS = [(1, 768, 32000), (1, 768, 3072), (1, 1280, 1000), (8, 768, 3072), (128, 768, 3072),
           (128, 3072, 768), (128, 384, 384), (128, 384, 1536)]  # fmt: skip
CONVOLUTIONS = [
    *[(224, 3, 32, 3, 2, 1), (224, 3, 64, 7, 2, 1), (112, 32, 16, 1, 1, 1), (112, 16, 96, 1, 1, 1)],
    *[(56, 24, 144, 1, 1, 1), (56, 144, 24, 1, 1, 1), (28, 192, 32, 1, 1, 1)],
    *[(14, 384, 64, 1, 1, 1), (14, 96, 576, 1, 1, 1), (7, 960, 160, 1, 1, 1)],
    *[(7, 320, 1280, 1, 1, 1), (56, 64, 256, 1, 1, 1), (14, 1024, 256, 1, 1, 1)],
    *[(56, 64, 64, 3, 1, 1), (28, 128, 128, 3, 1, 1), (14, 256, 256, 3, 1, 1)],
    *[(7, 512, 512, 3, 1, 1), (112, 32, 32, 3, 1, 32), (56, 144, 144, 3, 1, 144)],
    *[(14, 384, 384, 3, 1, 384), (7, 960, 960, 3, 1, 960)],
]


def bits(kind: str) -> float:
    """Return what a number of the weight takes, its part of the scales included."""
    return 32 if kind == "float32" else 4 + 16 / GROUP if "int4" in kind else 8


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    torch.manual_seed(0)
    peak, bandwidth = limits()
    print(f"peak {peak / 1e9:.0f} GOP/s of int8, {bandwidth / 1e9:.1f} GB/s read")
    print(f"{'':42}{'us':>9}{'GOP/s':>8}{'peak':>7}{'float':>7}{'memory':>8}")
    rows: list[tuple[str, Callable[..., Any], tuple[int, ...]]] = [
        *((f"linear {m}x{k}x{n}", linears, (m, k, n)) for m, k, n in LINEARS),
        *((f"conv {s[3]}x{s[3]} s{s[4]} {s[1]}>{s[2]} {s[0]}{' depthwise' * (s[5] > 1)}",
           convolutions, s) for s in CONVOLUTIONS),
    ]  # fmt: skip
    for name, function, shape in rows:
        if options.words and not any(word in name for word in options.words):
            continue
        work, seconds = function(*shape)
        for kind, t in seconds.items():
            share = work / t / peak if peak and kind != "float32" else 0.0
            ratio = seconds["float32"] / t
            speed = f"{t * 1e6:9.1f}{work / t / 1e9:8.0f}{share:7.2f}{ratio:7.2f}"
            read = f"{bits(kind) / 16 * work / t / bandwidth:8.2f}" if "linear 1x" in name else ""
            print(f"{name + ', ' + kind:42}{speed}{read}")


if __name__ == "__main__":
    main()
