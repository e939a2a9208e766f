# SPDX-License-Identifier: BSD-3-Clause
"""What an instruction computes and moves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from etx_schema import Tensor
from etx_schema._generated.program import (
    Bool,
    Int,
    IntList,
    OptionalTensorList,
    TensorList,
    TensorShapeDynamism,
)
from etx_schema.dtypes import tensor_nbytes
from etx_schema.inspect.describe_method import Method

PRODUCTS = {"mm", "bmm", "bmm_nt", "matmul", "linear", "narrow_linear", "addmm", "baddbmm"}
INTEGER = "etx::"
"""Attention, recurrent layers, operators with packed weights, on images with channels last."""
PLAIN = {"bmm_nt", "narrow_conv", "narrow_linear", "polynomial"}
"""Of that namespace as well, with the images and weights of torch's."""
RECURRENT = {"lstm": 4, "gru": 3, "rnn": 1}
"""How many rows each cell has in a matrix."""
PICKING = {
    "embedding",
    "embedding_bag",
    "gather",
    "grid_sampler_2d",
    "index",
    "index_select",
    "select_copy",
    "slice_copy",
    "take",
    "take_along_dim",
    "upsample_nearest2d",
}
"""Of the first tensor these read no more than they return."""


SHORTEST = 2e-7
"""Seconds from which on a rate is told: of less, what recording costs is too large a part."""


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
        return self.bytes[self._class_of(size)]

    def _class_of(self, size: int) -> int:
        return min((n for n in self.bytes if n >= size), default=max(self.bytes))

    def raised(self, reached: Iterable[tuple[Work, float]]) -> Peak:
        """Return what the machine can if it did such work in so many seconds.

        What takes so short that the clock's error counts is left out.
        """
        flop, rates = self.flop, dict(self.bytes)
        for work, seconds in reached:
            if seconds < SHORTEST:
                continue
            flop = max(flop, (work.flop or 0) / seconds)
            size = self._class_of(work.bytes or 0)
            rates[size] = max(rates[size], (work.bytes or 0) / seconds)
        for size in rates:
            rates[size] = max(rate for other, rate in rates.items() if other >= size)
        return Peak(flop, rates)


def work_of(method: Method, operator: str, args: Sequence[int]) -> Work:
    """Return the work of an instruction with the values `args`, the last of which is its result.

    Matrix products and convolutions count two for each multiplication; of other operators, and of
    delegates, only the bytes at their border are known.
    """
    tensors = list(dict.fromkeys(_tensors(method, args)))
    values = [value for index in tensors if isinstance(value := method.value(index), Tensor)]
    if any(value.shape_dynamism != TensorShapeDynamism.STATIC for value in values):
        return Work()
    sizes = [tensor_nbytes(value) for value in values]
    name = operator.partition("::")[2].partition(".")[0]
    if name in PICKING and len(sizes) > 1:
        sizes[0] = min(sizes[0], sizes[-1])
    moved = sum(sizes)
    direct = [value for index in args if isinstance(value := method.value(index), Tensor)]
    if operator.startswith(INTEGER) and name not in PLAIN:
        return Work(_integer_flop(name, direct, method, args), moved)
    flags = [value.bool_val for index in args if isinstance(value := method.value(index), Bool)]
    return Work(_flop(name, direct, any(flags)), moved)


def _tensors(method: Method, args: Sequence[int]) -> Iterator[int]:
    for index in args:
        value = method.value(index)
        if isinstance(value, Tensor):
            yield index
        elif isinstance(value, (TensorList, OptionalTensorList)):
            yield from (item for item in value.items if item >= 0)


def _count(tensor: Tensor) -> int:
    return math.prod(tensor.sizes)


def _flop(name: str, tensors: Sequence[Tensor], flag: bool) -> int | None:
    """Return the FLOP of a product or convolution of `tensors`, operands first.

    A convolution's `flag` says that it is transposed.
    """
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


def _integer_flop(
    name: str, tensors: Sequence[Tensor], method: Method, args: Sequence[int]
) -> int | None:
    """Return what `_flop` does, of attention, recurrent layers and operators on packed weights."""
    if name == "attention":
        query, key, result = tensors[0], tensors[1], tensors[-1]
        return 2 * (_count(query) + _count(result)) * key.sizes[1]
    if gates := RECURRENT.get(name.removeprefix("weight_only_")):
        input, state = tensors[:2]
        states, width = state.sizes[1], tensors[2 if gates == 4 else 1].sizes[1]
        projection = 0 if states == width else states
        columns = gates * (input.sizes[2] + states) + projection
        return 2 * math.prod(input.sizes[:2]) * columns * width
    if "linear" not in name and "conv" not in name:
        return None
    image, weight, result = tensors[0], tensors[1], tensors[-1]
    if "linear" in name:
        return 2 * _count(result) * image.sizes[-1]
    if "depthwise" in name:
        return 2 * _count(result) * weight.sizes[0]
    values = [method.value(index) for index in args]
    lists = [_numbers(method, value) for value in values if isinstance(value, IntList)]
    kernel, spacing = lists[0], lists[-1]
    groups = next(value.int_val for value in values if isinstance(value, Int))
    if math.prod(spacing) > 1:
        return 2 * _count(image) * math.prod(kernel) * result.sizes[-1] // groups
    return 2 * _count(result) * math.prod(kernel) * image.sizes[-1] // groups


def _numbers(method: Method, listed: IntList) -> list[int]:
    values = (method.value(index) for index in listed.items)
    return [value.int_val for value in values if isinstance(value, Int)]
