# SPDX-License-Identifier: BSD-3-Clause
"""What an instruction computes and moves, and what this machine can."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from etx_schema import Tensor
from etx_schema._generated.program import (
    Bool,
    OptionalTensorList,
    TensorList,
    TensorShapeDynamism,
)
from etx_schema.dtypes import DTYPES
from etx_schema.inspect.describe_method import Method

PRODUCTS = {"mm", "bmm", "matmul", "linear", "addmm", "baddbmm"}
SECONDS = 0.05
RUNS = 5
"""How long and how often each of this machine's abilities is measured, at least."""
SIZES = (64, 128, 256, 512)
"""Of matrices: where others use the machine, small ones are still undisturbed."""
MOVED = (1 << 18, 1 << 22, 1 << 26)


@dataclass(frozen=True)
class Work:
    """Additions and multiplications, None where they are not known, and bytes read and written.

    Both are None where a size is known only when it runs.
    """

    flop: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Peak:
    """FLOP a second, and bytes a second by the bytes that are read and written in turns."""

    flop: float
    bytes: Mapping[int, float]

    def bytes_of(self, size: int) -> float:
        """Return the bytes a second for so many bytes: caches are faster than memory."""
        return self.bytes[min((n for n in self.bytes if n >= size), default=max(self.bytes))]


def work_of(method: Method, operator: str, args: Sequence[int]) -> Work:
    """Return the work of an instruction with the values `args`, the last of which is its result.

    Matrix products and convolutions count two for each multiplication; of other operators, and of
    delegates, only the bytes at their border are known.
    """
    tensors = list(dict.fromkeys(_tensors(method, args)))
    values = [value for index in tensors if isinstance(value := method.value(index), Tensor)]
    if any(value.shape_dynamism != TensorShapeDynamism.STATIC for value in values):
        return Work()
    moved = sum(_count(value) * DTYPES[value.scalar_type][1] for value in values)
    direct = [value for index in args if isinstance(value := method.value(index), Tensor)]
    flags = [value.bool_val for index in args if isinstance(value := method.value(index), Bool)]
    return Work(_flop(operator.partition("::")[2], direct, any(flags)), moved)


def _tensors(method: Method, args: Sequence[int]) -> Iterator[int]:
    for index in args:
        value = method.value(index)
        if isinstance(value, Tensor):
            yield index
        elif isinstance(value, (TensorList, OptionalTensorList)):
            yield from (item for item in value.items if item >= 0)


def _count(tensor: Tensor) -> int:
    return math.prod(tensor.sizes)


def _flop(operator: str, tensors: Sequence[Tensor], flag: bool) -> int | None:
    """Return the FLOP of a product or convolution of `tensors`, operands first.

    A convolution's `flag` says that it is transposed.
    """
    name = operator.partition(".")[0]
    if len(tensors) < 3 or not all(tensor.sizes for tensor in tensors[:2]):
        return None
    if name in PRODUCTS:
        left = tensors[1 if name in ("addmm", "baddbmm") else 0]
        return 2 * _count(tensors[-1]) * left.sizes[-1] if left.sizes else None
    if "conv" in name and len(tensors[1].sizes) >= 3 and tensors[1].sizes[0]:
        weight = tensors[1]
        if flag or "transpose" in name:
            return 2 * _count(tensors[0]) * _count(weight) // weight.sizes[0]
        return 2 * _count(tensors[-1]) * _count(weight) // weight.sizes[0]
    return None


def measure_peak() -> Peak:
    """Measure NumPy's float32 matrix product and its copy for a moment, with NumPy's threads."""
    return Peak(max(map(_multiplied, SIZES)), {moved: _copied(moved) for moved in MOVED})


def _multiplied(size: int) -> float:
    one = np.ones((size, size), np.float32)
    product = np.empty_like(one)
    return 2 * size**3 / _least(lambda: np.matmul(one, one, out=product))


def _copied(moved: int) -> float:
    source = np.ones(moved // 8, np.float32)
    copy = np.ones_like(source)
    return moved / _least(lambda: np.copyto(copy, source))


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
