# SPDX-License-Identifier: BSD-3-Clause
"""`etx bundle`: test cases from files, and expected outputs from files or from the model."""

from __future__ import annotations

import argparse
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema import EtxError, ProgramError, Tensor
from etx_schema.bundle import is_bundle
from etx_schema.dtypes import DTYPES
from etx_schema.files import PathLike, load_bytes

from etx_devtools.bundled_program.config import MethodTestCase
from etx_devtools.bundled_program.core import BundledProgram
from etx_devtools.bundled_program.signature import Side
from etx_devtools.bundled_program.tensors import Bits

UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zlib.error)


def bundle(options: argparse.Namespace) -> None:
    """Add test cases to a program, or to a bundle, and write it."""
    made = _open(options.file)
    inputs = [read_arrays(path) for path in options.inputs]
    expected: list[Any] = [None] * len(inputs)
    if options.expect:
        if len(options.expect) != len(inputs):
            raise EtxError(
                f"{len(options.expect)} --expect for {len(inputs)} --inputs; give one for each"
            )
        expected = [read_arrays(path) for path in options.expect]
    if not inputs and not options.eager:
        raise EtxError("no test cases: give --inputs, or --eager for its example inputs")
    signature = made.signature(options.method)
    cases = [fitted(arrays, signature.inputs) for arrays in inputs]
    answers: list[Any] = [
        None if each is None else fitted(each, signature.outputs) for each in expected
    ]
    if options.eager:
        from etx_devtools.bundled_program.eager import answer

        cases, answers[:] = answer(options.eager, options.method, cases, made.program)
    made.add(options.method, [MethodTestCase(*pair) for pair in zip(cases, answers, strict=True)])
    made.save(options.output)
    if options.json:
        cases_of = {each.method_name: len(each.test_cases) for each in made.method_test_suites}
        size = Path(options.output).stat().st_size
        print(json.dumps({"file": options.output, "bytes": size, "cases": cases_of}, indent=1))
        return
    count = sum(len(suite.test_cases) for suite in made.method_test_suites)
    print(f"{options.output}: {count} test case{'s' * (count != 1)}")


def _open(path: str) -> BundledProgram:
    try:
        if is_bundle(load_bytes(path)):
            return BundledProgram.load(path)
        return BundledProgram(pte_file_path=path)
    except ProgramError as error:
        raise EtxError(f"{path}: {error}") from error


def read_arrays(path: PathLike) -> dict[str, Any]:
    """Read the arrays of an `.npz` by name, or that of a `.npy`, whose name is empty."""
    try:
        with open(path, "rb") as file:
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return {"": content}
            return {key: content[key] for key in content.files}
    except FileNotFoundError as error:
        raise EtxError(f"{path}: no such file") from error
    except (*UNREADABLE, zipfile.BadZipFile) as error:
        reason = "it is another file, or holds Python objects" if "pickle" in str(error) else error
        raise EtxError(f"{path} cannot be read as a .npy or .npz: {reason}") from error


def fitted(arrays: dict[str, Any], side: Side) -> list[Any]:
    """Return arrays in the order of the values, by name where all keys are names of these.

    Zero-dimensional arrays become numbers, and unsigned integers of their width the types that
    NumPy lacks, where the program has these.
    """
    values = list(arrays.values())
    if len(arrays) == len(side.names) and set(arrays) == set(side.names):
        values = [arrays[name] for name in side.names]
    if len(values) != len(side.values):
        return values
    return [_fit(array, value) for array, value in zip(values, side.values, strict=True)]


def _fit(array: Any, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return array.item() if array.ndim == 0 else array
    name, width = DTYPES.get(value.scalar_type, ("", 0))
    try:
        np.dtype(name)
    except TypeError:
        if array.dtype.kind in "uV" and array.dtype.itemsize == width:
            return Bits(np.ascontiguousarray(array).view(f"u{width}").reshape(array.shape), name)
    return array
