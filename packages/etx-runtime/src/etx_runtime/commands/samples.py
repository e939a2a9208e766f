# SPDX-License-Identifier: BSD-3-Clause
"""Inputs for a method: from files, as numbers, or random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema import EtxError
from etx_schema.calls import Place, read_calls
from etx_schema.calls import read_arrays as read_named

from etx_runtime import bits
from etx_runtime.commands.sizes import choose_symbols, shape_of
from etx_runtime.errors import InputError
from etx_runtime.runtime import Method
from etx_runtime.values import ValueInfo

Array = np.ndarray[Any, Any]
RAW = np.dtype("V1")
INTEGERS = 10
SUFFIXES = (".npy", ".npz", ".bin")


@dataclass
class InputOptions:
    """What the command line says of the inputs."""

    files: list[tuple[str, str]] = field(default_factory=list)
    """Name of an input or empty, and a file or the text of a number."""
    seed: int = 0
    shapes: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """Name of an input or empty, and its shape."""
    extreme: str = "max"
    symbols: dict[str, int] = field(default_factory=dict)


def prepare_calls(method: Method, given: InputOptions) -> list[list[Any]]:
    """Return the inputs of each call: what is given by name in all, files without in turn."""
    inputs = method.inputs
    named = _named(inputs, given.files)
    unnamed = [text for name, text in given.files if not name]
    shapes = _shapes(method, inputs, given)
    rows = _rows(method, inputs, named, unnamed)
    generator = np.random.default_rng(given.seed)
    drawn = [i for i, x in enumerate(inputs) if (x.dtype or "").lstrip("u").startswith("int")]
    limits = method.index_bounds() if any(i not in row for row in rows for i in drawn) else {}
    calls = []
    for row in rows:
        symbols = _symbols(method, inputs, given)
        call = []
        for index, info in enumerate(inputs):
            if index in row:
                call.append(_given(row[index], info, index, shapes.get(index, ())))
            elif info.kind == "tensor":
                call.append(_random(generator, shapes[index], info.dtype or "", limits.get(index)))
            else:
                call.append(_number(method, index, symbols))
        calls.append(call)
    return calls


def _rows(
    method: Method,
    inputs: tuple[ValueInfo, ...],
    named: Mapping[int, Any],
    files: Sequence[str],
) -> list[dict[int, Any]]:
    """Return what is given for each call by input: what the files hold, and `named`."""
    if not files:
        return [dict(named)]
    try:
        calls = read_calls(files, [place_of(info) for info in inputs], named.keys())
    except EtxError as error:
        raise InputError(f"{method.metadata.name()}: {error}") from error
    return [{**call, **named} for call in calls]


def place_of(info: ValueInfo) -> Place:
    """Return what files may hold of an input or output."""
    if info.shape is None:
        return Place(info.name, None, str(info))
    bounds = info.bounds or (None,) * len(info.shape)
    is_open = info.is_dynamic and not info.bounds
    sizes = [
        None if is_open or bound else size for size, bound in zip(info.shape, bounds, strict=True)
    ]
    return Place(info.name, tuple(sizes), str(info))


def _named(inputs: tuple[ValueInfo, ...], given: Sequence[tuple[str, str]]) -> dict[int, Any]:
    values: dict[int, Any] = {}
    for name, text in given:
        if not name:
            continue
        index = _find(inputs, name)
        if inputs[index].kind != "tensor" or Path(text).suffix not in SUFFIXES:
            values[index] = _literal(text, inputs[index])
            continue
        arrays = read_arrays(text)
        if len(arrays) != 1:
            raise InputError(f"input '{name}' takes one array, {text} holds {len(arrays)}")
        values[index] = arrays[0]
    return values


def _literal(text: str, info: ValueInfo) -> Any:
    """Return the number or text of an input that is written out."""
    if info.kind == "string":
        return text
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise InputError(
        f"input '{info.name}' ({info}) is a number, or a file that ends in "
        f"{', '.join(SUFFIXES)}; got '{text}'"
    )


def _find(inputs: tuple[ValueInfo, ...], name: str) -> int:
    """Return the index of the input called `name`, or at position `name`."""
    for index, info in enumerate(inputs):
        if name in (info.name, str(index)):
            return index
    known = ", ".join(info.name or str(index) for index, info in enumerate(inputs))
    raise InputError(f"the method has no input '{name}'; its inputs: {known or 'none'}")


def _symbols(method: Method, inputs: tuple[ValueInfo, ...], given: InputOptions) -> dict[str, int]:
    return choose_symbols(method.constraints, inputs, given.symbols, given.extreme)


def _shapes(
    method: Method, inputs: tuple[ValueInfo, ...], given: InputOptions
) -> dict[int, tuple[int, ...]]:
    """Return the shape of each tensor: the one given, else as the symbols say."""
    symbols = _symbols(method, inputs, given)
    tensors = [index for index, info in enumerate(inputs) if info.kind == "tensor"]
    shapes = {i: shape_of(method.constraints, inputs, i, symbols) for i in tensors}
    turns = iter(tensors)
    for name, shape in given.shapes:
        index = _find(inputs, name) if name else next(turns, None)
        if index is None:
            raise InputError(
                f"{len(given.shapes)} shapes were given; the method has {len(tensors)} arrays"
            )
        shapes[index] = shape
    return shapes


def _number(method: Method, index: int, symbols: Mapping[str, int]) -> Any:
    """Return the value that the method was specialised to, or that of a symbol."""
    for row in method.constraints.bounds:
        if row.input == index and row.dim is None and row.symbol in symbols:
            return symbols[row.symbol]
    return method.input_value(index)


def _random(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: str, limit: int | None
) -> Any:
    try:
        if not bits.is_numpy_type(dtype):
            made = bits.from_float32(generator.standard_normal(shape, np.float32), dtype)
            if made is None:
                raise InputError(f"random {dtype} cannot be made; give a file with --input")
            return made
        target = np.dtype(dtype)
        if target.kind == "b":
            return generator.integers(0, 2, shape).astype(target)
        if target.kind in "iu":
            return generator.integers(0, limit or INTEGERS, shape).astype(target)
        return generator.standard_normal(shape).astype(target)
    except (MemoryError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"not enough memory for random {dtype}{list(shape)}") from error


def _given(value: Any, info: ValueInfo, index: int, shape: tuple[int, ...]) -> Any:
    """Return an array from a file as the input needs it: raw bytes get dtype and shape."""
    if not isinstance(value, np.ndarray) or info.dtype is None:
        return value
    if value.dtype != RAW:
        return bits.of_type(value, info.dtype)
    width = info.nbytes // max(1, int(np.prod(info.shape or ())))
    expected = int(np.prod(shape)) * width
    if value.nbytes != expected:
        raise InputError(
            f"input {index} ('{info.name}'): the .bin file has {value.nbytes} bytes, "
            f"{info.dtype}{list(shape)} {expected}"
            + ("; --shape or --dim says which shape it has" if info.is_dynamic else "")
        )
    if not bits.is_numpy_type(info.dtype):
        return bits.of_type(value.view(f"u{width}").reshape(shape), info.dtype)
    return value.view(info.dtype).reshape(shape)


def read_arrays(path: str) -> list[Array]:
    """Read a `.npy`, the arrays of an `.npz`, or a raw `.bin` as bytes."""
    return list(named_arrays(path).values())


def named_arrays(path: str) -> dict[str, Array]:
    """Read the same by their keys; an array that is alone in its file has none."""
    try:
        return read_named(path)
    except EtxError as error:
        raise InputError(str(error)) from error
