# SPDX-License-Identifier: BSD-3-Clause
"""Inputs for a method: from files or random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from etx_runtime.errors import InputError
from etx_runtime.runtime import Method

TENSOR_TAG = 1
Array = np.ndarray[Any, Any]


def random_inputs(method: Method, seed: int, shapes: Sequence[tuple[int, ...]] = ()) -> list[Any]:
    """Return inputs with random content: `shapes` for the tensors in order, else the largest."""
    generator = np.random.default_rng(seed)
    meta = method.metadata
    given: Iterator[tuple[int, ...]] = iter(shapes)
    inputs = []
    for index in range(meta.num_inputs()):
        if meta.input_tag(index) != TENSOR_TAG:
            inputs.append(method.input_value(index))
            continue
        info = meta.input_tensor_meta(index)
        shape = next(given, None) or _largest(method, index, info.sizes())
        inputs.append(_random(generator, shape, info.dtype_name()))
    return inputs


def _largest(method: Method, index: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    bounds = {d.dim: d.max for d in method.constraints.dims if d.input == index}
    largest = (bounds.get(position) for position in range(len(sizes)))
    return tuple(min(a, b or a) for a, b in zip(sizes, largest, strict=True))


def _random(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    try:
        target = np.dtype(dtype)
    except TypeError as error:
        raise InputError(f"random {dtype} cannot be made with NumPy; give --input") from error
    if target.kind == "b":
        return generator.integers(0, 2, shape).astype(target)
    if target.kind in "iu":
        return generator.integers(0, 10, shape).astype(target)
    return generator.standard_normal(shape).astype(target)


def read_inputs(method: Method, paths: Sequence[str]) -> list[Any]:
    """Read `.npy` files, the arrays of an `.npz` in order, or raw `.bin` for the tensor inputs."""
    arrays = [array for path in paths for array in _read(path)]
    meta = method.metadata
    tags = [meta.input_tag(index) for index in range(meta.num_inputs())]
    if len(arrays) != tags.count(TENSOR_TAG):
        raise InputError(
            f"{meta.name()} takes {tags.count(TENSOR_TAG)} arrays, {len(arrays)} were given"
        )
    inputs: list[Any] = []
    for index, tag in enumerate(tags):
        if tag != TENSOR_TAG:
            inputs.append(method.input_value(index))
            continue
        array = arrays.pop(0)
        info = meta.input_tensor_meta(index)
        if array.dtype == np.dtype("V1"):
            array = _reshape(array, info.dtype_name(), info.sizes())
        inputs.append(array)
    return inputs


def _read(path: str) -> list[Array]:
    suffix = Path(path).suffix
    try:
        if suffix == ".bin":
            return [np.fromfile(path, np.dtype("V1"))]
        content = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error
    return [content] if isinstance(content, np.ndarray) else list(content.values())


def _reshape(raw: Array, dtype: str, sizes: tuple[int, ...]) -> Array:
    expected = int(np.prod(sizes)) * np.dtype(dtype).itemsize
    if raw.nbytes != expected:
        raise InputError(f"a .bin file has {raw.nbytes} bytes, {dtype}{list(sizes)} {expected}")
    return raw.view(dtype).reshape(sizes)
