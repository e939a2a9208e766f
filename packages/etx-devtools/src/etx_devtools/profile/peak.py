# SPDX-License-Identifier: BSD-3-Clause
"""What this machine can, as NumPy measures it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from etx_devtools.profile.work import Peak

Array = np.ndarray[Any, Any]

SECONDS = 0.05
RUNS = 5
"""How long and how often each of this machine's abilities is measured, at least."""
SIZES = (64, 128, 256, 512)
"""Of matrices: where others use the machine, small ones are still undisturbed."""
MOVED = (1 << 15, 1 << 18, 1 << 22, 1 << 26)
SHARED = 1 << 22
"""From so many bytes on threads share the copy, each so often before it is measured."""
COPIES = 8


def measure_peak(threads: int = 1) -> Peak:
    """Measure NumPy's float32 matrix product and, on so many threads, its copy for a moment."""
    moved = {size: _copied(size, threads if size >= SHARED else 1) for size in MOVED}
    return Peak(max(map(_multiplied, SIZES)), moved)


def _multiplied(size: int) -> float:
    one = np.ones((size, size), np.float32)
    product = np.empty_like(one)
    return 2 * size**3 / _least(lambda: np.matmul(one, one, out=product))


def _copied(moved: int, threads: int) -> float:
    source = np.ones(moved // 8, np.float32)
    copy = np.ones_like(source)
    if threads == 1:
        return moved / _least(lambda: np.copyto(copy, source))
    parts = list(zip(np.array_split(copy, threads), np.array_split(source, threads), strict=True))

    def several(part: tuple[Array, Array]) -> None:
        for _ in range(COPIES):
            np.copyto(*part)

    with ThreadPoolExecutor(threads) as pool:
        return moved * COPIES / _least(lambda: list(pool.map(several, parts)))


def _least(run: Callable[[], object]) -> float:
    """Return the least seconds of a run, of many: other processes only make it longer."""
    least, end = math.inf, time.perf_counter() + SECONDS
    runs = 0
    while True:
        start = time.perf_counter()
        run()
        now = time.perf_counter()
        least, runs = min(least, now - start), runs + 1
        if now > end and runs >= RUNS:
            return max(least, 1e-9)
