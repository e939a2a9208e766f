# SPDX-License-Identifier: BSD-3-Clause
"""Times kernels in each dtype next to torch eager, in turns; prints the table of docs/dtypes.md.

python benchmarks/dtypes.py [words…]   words: only rows whose name has one of them

One thread. Cells are the shortest CPU time of a call in µs, in brackets that of torch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from prepared import Prepared

SECONDS = 0.3
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int8")
CONVOLUTIONS = (("3x3 64>64 28", 64, 28, 3, 1), ("1x1 64>128 28", 128, 28, 1, 1),
                ("3x3 256>256 14, dilation 18", 256, 14, 3, 18))  # fmt: skip
aten = torch.ops.aten
Row = tuple[str, str, tuple[Any, ...], Callable[[], Any]]


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return random ones, small where they are integers."""
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(-5, 5, shape).to(dtype)


def products(dtype: torch.dtype) -> Iterator[Row]:
    """Yield name, kernel, its arguments and the call of torch."""
    for m in (1, 128):
        a = numbers((m, 768), dtype), numbers((3072, 768), dtype), numbers((3072,), dtype)
        out = torch.empty(m, 3072, dtype=dtype)
        yield f"linear {m}x768x3072", "aten::linear.out", (*a, out), lambda a=a: aten.linear(*a)
    b = numbers((128, 128), dtype), numbers((128, 128), dtype)
    yield "mm 128", "aten::mm.out", (*b, torch.empty_like(b[0])), lambda: aten.mm(*b)
    for name, channels, size, kernel, dilation in CONVOLUTIONS:
        if dilation > 1 and not dtype.is_floating_point:
            continue  # torch has none
        inner = 64 if dilation == 1 else channels
        x, w = (1, inner, size, size), (channels, inner, kernel, kernel)
        tensors = [numbers(shape, dtype) for shape in (x, w, (channels,))]
        padding = [dilation * (kernel // 2)] * 2
        c = *tensors, [1, 1], padding, [dilation] * 2, False, [0, 0], 1
        out = torch.empty(1, channels, size, size, dtype=dtype)
        yield f"conv {name}", "aten::convolution.out", (*c, out), lambda c=c: aten.convolution(*c)


def rows(dtype: torch.dtype) -> Iterator[Row]:
    """Yield products, then what reads each number once."""
    yield from products(dtype)
    x = numbers((128, 768), dtype)
    y = torch.empty_like(x)
    yield "add 128x768", "aten::add.out", (x, x, 1, y), lambda: aten.add(x, x)
    sums = aten.sum.dim_IntList(x, [1], False)
    given = (x, [1], False, None, torch.empty_like(sums))
    yield "sum 128x768", "aten::sum.IntList_out", given, lambda: aten.sum.dim_IntList(x, [1])
    if not dtype.is_floating_point:
        return
    yield "softmax 128x768", "aten::_softmax.out", (x, -1, False, y), lambda: x.softmax(-1)
    w = numbers((768,), dtype)
    norm = (x, [768], w, w, 1e-5)
    outs = map(torch.empty_like, aten.native_layer_norm(*norm))
    name = "aten::native_layer_norm.out"
    yield "layer norm 128x768", name, (*norm, *outs), lambda: aten.native_layer_norm(*norm)
    yield "gelu 128x768", "aten::gelu.out", (x, "none", y), lambda: aten.gelu(x)


def in_turns(*calls: Callable[[], Any]) -> list[float]:
    """Return the shortest time of each in µs: the least disturbed one."""
    shortest = [1e9] * len(calls)
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until or max(shortest) == 1e9:
        for i, call in enumerate(calls):
            begin = time.thread_time()
            call()
            shortest[i] = min(shortest[i], time.thread_time() - begin)
    return [seconds * 1e6 for seconds in shortest]


def shown(microseconds: float) -> str:
    """Return three digits or all before the point."""
    return f"{microseconds:.0f}" if microseconds >= 100 else f"{microseconds:.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cells: dict[str, dict[str, str]] = {}
    for dtype in DTYPES:
        for name, kernel, args, eager in rows(getattr(torch, dtype)):
            if words and not any(word in name for word in words):
                continue
            ours, theirs = in_turns(Prepared(kernel).prepare(*args), eager)
            cells.setdefault(name, {})[dtype] = f"{shown(ours)} ({shown(theirs)})"
    print(f"| | {' | '.join(DTYPES)} |\n| --- |{' --- |' * len(DTYPES)}")
    for name, row in cells.items():
        print(f"| {name} | {' | '.join(row.get(dtype, '') for dtype in DTYPES)} |")


if __name__ == "__main__":
    main()
