# SPDX-License-Identifier: BSD-3-Clause
"""Times kernels in each dtype next to torch eager, in turns; prints the table of docs/dtypes.md.

python benchmarks/dtypes.py [--json FILE] [words…]   words: only rows whose name has one of them

One thread. Cells are the CPU time in µs that one call in twenty is below, in brackets that of
torch. Below, the ten cells that are slowest next to torch.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from prepared import Prepared

SECONDS = 0.12
WORST = 10
DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int8")
CONVOLUTIONS = (("3x3 64>64 28", 64, 64, 28, 3, 1, 1), ("1x1 64>128 28", 64, 128, 28, 1, 1, 1),
                ("3x3 depthwise 128 28", 128, 128, 28, 3, 1, 128),
                ("3x3 256>256 14, dilation 18", 256, 256, 14, 3, 18, 1))  # fmt: skip
aten = torch.ops.aten
Row = tuple[str, str, tuple[Any, ...], Callable[[], Any]]
"""Name, kernel, its arguments and the call of torch."""


def numbers(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return random ones, small where they are integers."""
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(-5, 5, shape).to(dtype)


def row(name: str, kernel: str, eager: Any, *args: Any, extra: tuple[Any, ...] = ()) -> Row:
    """Return a row whose outputs have the shapes and dtypes that torch gives; `extra`: arguments
    that only the kernel takes, after the others."""
    results = eager(*args)
    results = results if isinstance(results, tuple) else (results,)
    outs = [torch.empty(r.shape, dtype=r.dtype) for r in results]
    return name, f"aten::{kernel}", (*args, *extra, *outs), lambda: eager(*args)


def products(dtype: torch.dtype) -> Iterator[Row]:
    """Yield products and convolutions."""
    for m, k, n in ((1, 768, 3072), (1, 4096, 4096), (8, 768, 3072), (128, 768, 3072)):
        a = numbers((m, k), dtype), numbers((n, k), dtype), numbers((n,), dtype)
        yield row(f"linear {m}x{k}x{n}", "linear.out", aten.linear, *a)
    square, wide = numbers((128, 128), dtype), numbers((768, 3072), dtype)
    yield row("mm 128", "mm.out", aten.mm, square, square)
    yield row("mm 1x768x3072", "mm.out", aten.mm, numbers((1, 768), dtype), wide)
    three = numbers((12, 128, 64), dtype), numbers((12, 64, 128), dtype)
    yield row("bmm 12x128x64x128", "bmm.out", aten.bmm, *three)
    for name, inner, channels, size, kernel, dilation, groups in CONVOLUTIONS:
        if dilation > 1 and not dtype.is_floating_point:
            continue  # torch has none
        x, w = (1, inner, size, size), (channels, inner // groups, kernel, kernel)
        tensors = [numbers(shape, dtype) for shape in (x, w, (channels,))]
        rest = [1, 1], [dilation * (kernel // 2)] * 2, [dilation] * 2, False, [0, 0], groups
        yield row(f"conv {name}", "convolution.out", aten.convolution, *tensors, *rest)


def elementwise(dtype: torch.dtype) -> Iterator[Row]:
    """Yield what computes each number by itself."""
    x, y, z = (numbers((128, 768), dtype) for _ in range(3))
    line, mask = numbers((768,), dtype), torch.rand(128, 768) < 0.5
    yield row("add", "add.out", aten.add, x, y, extra=(1,))
    yield row("add a line", "add.out", aten.add, x, line, extra=(1,))
    yield row("sub", "sub.out", aten.sub, x, y, extra=(1,))
    yield row("mul", "mul.out", aten.mul, x, y)
    yield row("mul a number", "mul.Scalar_out", aten.mul.Scalar, x, 3)
    yield row("maximum", "maximum.out", aten.maximum, x, y)
    yield row("eq", "eq.Tensor_out", aten.eq.Tensor, x, y)
    yield row("eq a number", "eq.Scalar_out", aten.eq.Scalar, x, 3)
    yield row("where", "where.self_out", aten.where.self, mask, x, z)
    yield row("clamp", "clamp.out", aten.clamp, x, -1, 2)
    yield row("masked_fill", "masked_fill.Scalar_out", aten.masked_fill.Scalar, x, mask, 1)
    yield row("relu", "relu.out", aten.relu, x)
    yield row("neg", "neg.out", aten.neg, x)
    yield row("abs", "abs.out", aten.abs, x)
    yield row("to float32", "_to_copy.out", lambda t: t.to(torch.float32, copy=True), x,
              extra=(False, None))  # fmt: skip
    if not dtype.is_floating_point:
        yield row("bitwise_and", "bitwise_and.Tensor_out", aten.bitwise_and.Tensor, x, y)
        yield row("floor_divide", "floor_divide.out", aten.floor_divide, x, y * 2 + 1)
        return
    yield row("div", "div.out", aten.div.Tensor, x, y)
    yield row("pow 2", "pow.Tensor_Scalar_out", aten.pow.Tensor_Scalar, x, 2)
    for name in ("exp", "sigmoid", "tanh", "rsqrt", "erf", "sin", "floor"):
        kernel = getattr(aten, name)
        yield row(name, f"{name}.out", kernel, x.abs() if name == "rsqrt" else x)
    yield row("gelu", "gelu.out", lambda t, _: aten.gelu(t), x, "none")


def along(dtype: torch.dtype) -> Iterator[Row]:
    """Yield reductions, norms and pools."""
    x, image = numbers((128, 768), dtype), numbers((1, 64, 56, 56), dtype)
    yield row("sum", "sum.IntList_out", aten.sum.dim_IntList, x, [1], False,
              extra=(None,))  # fmt: skip
    yield row("sum of columns", "sum.IntList_out", aten.sum.dim_IntList, x, [0], False,
              extra=(None,))  # fmt: skip
    yield row("amax", "amax.out", aten.amax, x, [1], False)
    yield row("argmax", "argmax.out", aten.argmax, x, 1, False)
    yield row("cumsum", "cumsum.out", aten.cumsum, x, 1, extra=(None,))
    yield row("any", "any.out", aten.any.dim, x, 1, False)
    yield row("sort", "sort.values", aten.sort, x, 1, False)
    yield row("topk 5", "topk.values", aten.topk, x, 5, 1, True, True)
    yield row("max_pool 3x3", "max_pool2d_with_indices.out", aten.max_pool2d_with_indices,
              image, [3, 3], [2, 2], [1, 1], [1, 1], False)  # fmt: skip
    if not dtype.is_floating_point:
        return
    line = numbers((768,), dtype)
    norm = x, [768], line, line, 1e-5
    yield row("mean", "mean.out", aten.mean.dim, x, [1], False, extra=(None,))
    yield row("var", "var.correction_out", lambda t, d, c, k: t.var(d, correction=c, keepdim=k),
              x, [1], 1, False)  # fmt: skip
    yield row("softmax", "_softmax.out", aten._softmax, x, -1, False)
    yield row("log_softmax", "_log_softmax.out", aten._log_softmax, x, -1, False)
    yield row("layer norm", "native_layer_norm.out", aten.native_layer_norm, *norm)
    channels = [numbers((64,), dtype).abs() + 1 for _ in range(4)]
    yield row("group norm", "native_group_norm.out", aten.native_group_norm, image, *channels[:2],
              1, 64, 56 * 56, 8, 1e-5)  # fmt: skip
    yield row("batch norm", "_native_batch_norm_legit_no_training.out",
              aten._native_batch_norm_legit_no_training, image, *channels, 0.1, 1e-5)  # fmt: skip
    yield row("avg_pool 3x3", "avg_pool2d.out", aten.avg_pool2d, image, [3, 3], [2, 2], [1, 1],
              False, True, None)  # fmt: skip


def moves(dtype: torch.dtype) -> Iterator[Row]:
    """Yield what copies numbers."""
    x, image = numbers((128, 768), dtype), numbers((1, 64, 28, 28), dtype)
    indices = torch.randint(0, 128, (128,))
    yield row("transpose", "transpose_copy.int_out", aten.transpose_copy.int, x, 0, 1)
    yield row("slice", "slice_copy.Tensor_out", aten.slice_copy.Tensor, x, 1, 0, 767, 1)
    yield row("cat", "cat.out", aten.cat, [x, x], 1)
    yield row("index_select", "index_select.out", aten.index_select, x, 0, indices)
    yield row("gather", "gather.out", aten.gather, x, 1, torch.randint(0, 768, (128, 768)),
              extra=(False,))  # fmt: skip
    yield row("pad", "constant_pad_nd.out", aten.constant_pad_nd, image, [1, 1, 1, 1], 0)
    yield row("flip", "flip.out", aten.flip, x, [1])
    yield row("tril", "tril.out", aten.tril, x, 0)
    if dtype.is_floating_point:
        up = image, [56, 56], None
        yield row("nearest 2x", "upsample_nearest2d.vec_out", aten.upsample_nearest2d.vec, *up)
        yield row("bilinear 2x", "upsample_bilinear2d.vec_out", aten.upsample_bilinear2d.vec,
                  image, [56, 56], False, None)  # fmt: skip


def rows(dtype: torch.dtype) -> Iterator[Row]:
    """Yield all of them."""
    for family in (products, elementwise, along, moves):
        yield from family(dtype)


def in_turns(*calls: Callable[[], Any]) -> list[float]:
    """Return the time of each in µs that one call in twenty is below: hardly disturbed, and not
    what a step of the clock makes of a single one."""
    times: list[list[float]] = [[] for _ in calls]
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until or not times[-1]:
        for call, own in zip(calls, times, strict=True):
            begin = time.thread_time()
            call()
            own.append(time.thread_time() - begin)
    return [sorted(own)[len(own) // 20] * 1e6 for own in times]


def shown(microseconds: float) -> str:
    """Return three digits or all before the point."""
    return f"{microseconds:.0f}" if microseconds >= 100 else f"{microseconds:.1f}"


def measure(words: list[str]) -> Iterator[dict[str, Any]]:
    """Yield name, dtype and the µs of each."""
    for dtype in DTYPES:
        for name, kernel, args, eager in rows(getattr(torch, dtype)):
            if words and not any(word in name for word in words):
                continue
            ours, theirs = in_turns(Prepared(kernel).prepare(*args), eager)
            yield {"name": name, "dtype": dtype, "etx": ours, "torch": theirs}


def print_worst(cells: list[dict[str, Any]]) -> None:
    """Print the cells that are slowest next to torch."""
    print("\n| slowest next to torch | dtype | share of its speed |\n| --- | --- | --- |")
    for cell in sorted(cells, key=lambda c: c["torch"] / c["etx"])[:WORST]:
        print(f"| {cell['name']} | {cell['dtype']} | {cell['torch'] / cell['etx']:.2f} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cells = list(measure(arguments.words))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(cells, indent=1))
    table: dict[str, dict[str, str]] = {}
    for cell in cells:
        text = f"{shown(cell['etx'])} ({shown(cell['torch'])})"
        table.setdefault(cell["name"], {})[cell["dtype"]] = text
    print(f"| | {' | '.join(DTYPES)} |\n| --- |{' --- |' * len(DTYPES)}")
    for name, texts in table.items():
        print(f"| {name} | {' | '.join(texts.get(dtype, '') for dtype in DTYPES)} |")
    print_worst(cells)


if __name__ == "__main__":
    main()
