# SPDX-License-Identifier: BSD-3-Clause
"""Inputs for a method: from files or random."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from etx_runtime.errors import InputError
from etx_runtime.runtime import Method

TENSOR_TAG = 1
Array = np.ndarray[Any, Any]


def prepare_calls(method: Method, options: Any) -> list[list[Any]]:
    """Return the inputs of each call that the command line asks for."""
    if options.input:
        if options.shape:
            raise InputError("--shape is for random inputs; the files of --input have their own")
        return read_inputs(method, options.input)
    return [random_inputs(method, options.seed, options.shape)]


def random_inputs(
    method: Method, seed: int, shapes: Sequence[tuple[int, ...] | str] = ()
) -> list[Any]:
    """Return inputs with random content.

    `shapes` holds a shape for each tensor in order, or "min" or "max" for all; the largest where
    there is none.
    """
    generator = np.random.default_rng(seed)
    meta = method.metadata
    bound = next((shape for shape in shapes if isinstance(shape, str)), "max")
    given = iter([shape for shape in shapes if not isinstance(shape, str)])
    inputs = []
    for index in range(meta.num_inputs()):
        if meta.input_tag(index) != TENSOR_TAG:
            inputs.append(_number(method, index, bound))
            continue
        info = meta.input_tensor_meta(index)
        shape = next(given, None)
        if shape is None:
            shape = _extreme(method, index, info.sizes(), bound)
        inputs.append(_random(generator, shape, info.dtype_name()))
    return inputs


def _number(method: Method, index: int, bound: str) -> Any:
    """Return the value that the method was specialised to, or the least or largest allowed one."""
    for row in method.constraints.bounds:
        if row.input == index and row.dim is None:
            limits = (row.min, row.max) if bound == "min" else (row.max, row.min)
            return next((limit for limit in limits if limit is not None), 0)
    return method.input_value(index)


def _extreme(method: Method, index: int, sizes: tuple[int, ...], bound: str) -> tuple[int, ...]:
    found = (b for b in method.constraints.bounds if b.input == index)
    bounds = {b.dim: b for b in found if b.dim is not None}
    shape = list(sizes)
    for position, dim in bounds.items():
        size = sizes[position] if dim.max is None else min(sizes[position], dim.max)
        shape[position] = size // dim.divisor * dim.divisor
        if bound == "min":
            least = 0 if dim.min is None else dim.min
            shape[position] = -(-least // dim.divisor) * dim.divisor
    return tuple(shape)


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


def read_inputs(method: Method, paths: Sequence[str]) -> list[list[Any]]:
    """Read `.npy` files, the arrays of an `.npz` in order, or raw `.bin` for the tensor inputs.

    Arrays for several calls are the inputs of the first, then those of the second, and so on.
    """
    arrays = [array for path in paths for array in _read(path)]
    meta = method.metadata
    tags = [meta.input_tag(index) for index in range(meta.num_inputs())]
    tensors = tags.count(TENSOR_TAG)
    if not tensors or not arrays or len(arrays) % tensors:
        raise InputError(f"{meta.name()} takes {tensors} arrays a call, {len(arrays)} were given")
    calls = []
    while arrays:
        calls.append([_next_input(method, index, tag, arrays) for index, tag in enumerate(tags)])
    return calls


def _next_input(method: Method, index: int, tag: int, arrays: list[Array]) -> Any:
    if tag != TENSOR_TAG:
        return method.input_value(index)
    array = arrays.pop(0)
    info = method.metadata.input_tensor_meta(index)
    if array.dtype == np.dtype("V1"):
        return _reshape(array, info.dtype_name(), info.sizes())
    return array


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
