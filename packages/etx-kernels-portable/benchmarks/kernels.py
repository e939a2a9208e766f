# SPDX-License-Identifier: BSD-3-Clause
"""Times kernels on shapes of common models against eager PyTorch.

python benchmarks/kernels.py [--threads 2] [words…]   words: only rows whose name has one of them
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from prepared import Prepared

aten = torch.ops.aten
SECONDS = 0.2
Row = tuple[str, float, str, tuple[Any, ...], Callable[[], Any]]


def convolution(name: str, cin: int, cout: int, size: int, kernel: int, stride: int,
                groups: int = 1) -> Row:  # fmt: skip
    """Return a row of a two-dimensional convolution with bias."""
    x, w = torch.randn(1, cin, size, size), torch.randn(cout, cin // groups, kernel, kernel)
    pad = 0 if stride == kernel else kernel // 2
    args = x, w, torch.randn(cout), [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], groups

    def eager() -> torch.Tensor:
        return aten.convolution(*args)

    out = torch.empty_like(eager())
    work = 2 * out.numel() * cin // groups * kernel * kernel
    return f"conv {name}", work, "aten::convolution.out", (*args, out), eager


def linear(m: int, k: int, n: int) -> Row:
    """Return a row of a linear layer with bias."""
    args = torch.randn(m, k), torch.randn(n, k), torch.randn(n)
    name, work = f"linear {m}x{k}x{n}", 2 * m * k * n
    return name, work, "aten::linear.out", (*args, torch.empty(m, n)), lambda: aten.linear(*args)


def bmm(b: int, m: int, k: int, n: int) -> Row:
    """Return a row of a batch of products."""
    args = torch.randn(b, m, k), torch.randn(b, k, n)
    name, work = f"bmm {b}x{m}x{k}x{n}", 2 * b * m * k * n
    return name, work, "aten::bmm.out", (*args, torch.empty(b, m, n)), lambda: aten.bmm(*args)


CONVOLUTIONS = [
    ("resnet 7x7 s2 3>64 224", 3, 64, 224, 7, 2),
    ("resnet 3x3 64 56", 64, 64, 56, 3, 1),
    ("resnet 3x3 s2 64>128 56", 64, 128, 56, 3, 2),
    ("resnet 3x3 128 28", 128, 128, 28, 3, 1),
    ("resnet 3x3 256 14", 256, 256, 14, 3, 1),
    ("resnet 3x3 512 7", 512, 512, 7, 3, 1),
    ("resnet 1x1 s2 256>512 14", 256, 512, 14, 1, 2),
    ("mobilenet 3x3 s2 3>32 224", 3, 32, 224, 3, 2),
    ("mobilenet 1x1 16>96 112", 16, 96, 112, 1, 1),
    ("mobilenet 1x1 144>24 56", 144, 24, 56, 1, 1),
    ("mobilenet 1x1 64>384 14", 64, 384, 14, 1, 1),
    ("mobilenet 1x1 960>160 7", 960, 160, 7, 1, 1),
    ("mobilenet 1x1 960>240 1", 960, 240, 1, 1, 1),
    ("depthwise 3x3 32 112", 32, 32, 112, 3, 1, 32),
    ("depthwise 3x3 s2 96 112", 96, 96, 112, 3, 2, 96),
    ("depthwise 3x3 576 14", 576, 576, 14, 3, 1, 576),
    ("depthwise 3x3 960 7", 960, 960, 7, 3, 1, 960),
    ("depthwise 5x5 672 14", 672, 672, 14, 5, 1, 672),
    ("vit 16x16 s16 3>192 224", 3, 192, 224, 16, 16),
]
LINEARS = [
    *[(1, 64, 64), (1, 384, 384), (1, 1280, 1000), (4, 384, 1536), (8, 384, 384), (16, 384, 1536)],
    *[(24, 384, 384), (32, 384, 1536), (128, 64, 64), (128, 384, 384), (128, 384, 1536)],
    *[(128, 1536, 384), (197, 192, 576), (197, 768, 192), (128, 768, 3072)],
]
PRODUCTS = [(12, 16, 32, 16), (12, 128, 32, 128), (12, 128, 128, 32), (3, 197, 64, 197)]


def others() -> Iterator[Row]:
    """Yield rows of softmax, normalisation, activation and pooling."""
    x = torch.randn(12, 128, 128)
    args: tuple[Any, ...] = (x, -1, False)
    yield ("softmax 1536x128", x.numel(), "aten::_softmax.out", (*args, torch.empty_like(x)),
           lambda a=args: aten._softmax(*a))  # fmt: skip
    x, w = torch.randn(128, 384), torch.randn(384)
    args = x, [384], w, w, 1e-5
    outs = torch.empty_like(x), torch.empty(128, 1), torch.empty(128, 1)
    yield ("layer_norm 128x384", x.numel(), "aten::native_layer_norm.out", (*args, *outs),
           lambda a=args: aten.native_layer_norm(*a))  # fmt: skip
    x = torch.randn(128, 1536)
    yield ("gelu 128x1536", x.numel(), "aten::gelu.out", (x, "none", torch.empty_like(x)),
           lambda x=x: aten.gelu(x))  # fmt: skip
    args = torch.randn(1, 64, 112, 112), [3, 3], [2, 2], [1, 1], [1, 1], False
    results = tuple(torch.empty_like(t) for t in aten.max_pool2d_with_indices(*args))
    yield ("max_pool 64 112", results[0].numel(), "aten::max_pool2d_with_indices.out",
           (*args, *results), lambda a=args: aten.max_pool2d_with_indices(*a))  # fmt: skip


def best(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    """Return the shortest of many calls: the least disturbed one."""
    call()
    shortest, until = 1e9, time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        begin = clock()
        call()
        shortest = min(shortest, clock() - begin)
    return shortest


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    rows = [*(convolution(*s) for s in CONVOLUTIONS), *(linear(*s) for s in LINEARS)]
    rows += [*(bmm(*s) for s in PRODUCTS), *others()]
    print(f"{'':28}{'us':>10}{'Gop/s':>8}{'eager us':>10}{'eager / us':>12}")
    for name, work, kernel, args, eager in rows:
        if options.words and not any(word in name for word in options.words):
            continue
        ours = Prepared(kernel, options.threads).prepare(*args)
        mine, theirs = best(ours, clock), best(eager, clock)
        speed = work / mine / 1e9
        print(f"{name:28}{mine * 1e6:10.1f}{speed:8.1f}{theirs * 1e6:10.1f}{theirs / mine:12.2f}")
    sys.stdout.flush()
    os._exit(0)  # The helper thread never ends.


if __name__ == "__main__":
    main()
