# SPDX-License-Identifier: BSD-3-Clause
"""`etx bundle`: test cases from files, and expected outputs from files or from the model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from etx_schema import EtxError, ProgramError, Tensor, TensorShapeDynamism
from etx_schema.bundle import is_bundle
from etx_schema.calls import Place, choose_method, read_calls
from etx_schema.dtypes import DTYPES
from etx_schema.errors import naming
from etx_schema.files import load_bytes

from etx_devtools.bundled_program.config import MethodTestCase
from etx_devtools.bundled_program.core import BundledProgram
from etx_devtools.bundled_program.signature import Side
from etx_devtools.bundled_program.tensors import Bits


def bundle(options: argparse.Namespace) -> None:
    """Add test cases to a program, or to a bundle, and write it."""
    with naming(options.file):
        made = _open(options.file)
        made.check()
        method = choose_method(made.methods, options.method, options.file)
        signature = made.signature(method)
    suites = {each.method_name: each.test_cases for each in made.method_test_suites}
    begun = len(suites.get(method, []))
    cases = _read(options.inputs, signature.inputs, method, begun)
    answers: list[Any] = [None] * len(cases)
    if options.expect:
        if len(options.expect) != len(options.inputs):
            raise EtxError(
                f"{len(options.expect)} --expect for {len(options.inputs)} --inputs; give one for "
                "each"
            )
        answers = _read(options.expect, signature.outputs, method, begun)
        if len(answers) != len(cases):
            raise EtxError(
                f"--expect {', '.join(options.expect)}: {len(answers)} cases, of --inputs "
                f"{', '.join(options.inputs)} {len(cases)}"
            )
    if not cases and not options.eager:
        raise EtxError("no test cases: give --inputs, or --eager for its example inputs")
    if options.eager:
        from etx_devtools.bundled_program.eager import answer

        cases, answers[:] = answer(options.eager, method, cases, made.program)
    made.add(method, [MethodTestCase(*pair) for pair in zip(cases, answers, strict=True)])
    with naming(options.file):
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


def _read(paths: Sequence[str], side: Side, method: str, begun: int) -> list[list[Any]]:
    """Return the values of all cases in files; those of a method that are there are `begun`."""
    found: list[list[Any]] = []
    for path in paths:
        with naming(path):
            for values in read_values(path, side):
                side.check(values, f"{method}, case {begun + len(found)}")
                found.append(values)
    return found


def read_values(path: str, side: Side) -> list[list[Any]]:
    """Return the values of each case in a file, in the order of the method's.

    Zero-dimensional arrays become numbers, and unsigned integers of their width the types that
    NumPy lacks, where the program has these.
    """
    places = [_place(*pair) for pair in zip(side.names, side.values, strict=True)]
    calls = read_calls([path], places, word=side.word)
    missing = [i for call in calls for i in range(len(places)) if i not in call]
    if missing:
        raise EtxError(f"{path}: no array of {side.word} {side.describe(missing[0])}")
    return [[_fit(call[i], value) for i, value in enumerate(side.values)] for call in calls]


def _place(name: str, value: Any) -> Place:
    if not isinstance(value, Tensor):
        return Place(name, None)
    is_static = value.shape_dynamism == TensorShapeDynamism.STATIC
    return Place(name, tuple(size if is_static else None for size in value.sizes))


def _fit(array: Any, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return array
    name, width = DTYPES.get(value.scalar_type, ("", 0))
    try:
        np.dtype(name)
    except TypeError:
        if array.dtype.kind in "uV" and array.dtype.itemsize == width:
            return Bits(np.ascontiguousarray(array).view(f"u{width}").reshape(array.shape), name)
    return array
