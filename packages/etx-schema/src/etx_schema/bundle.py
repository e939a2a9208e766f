# SPDX-License-Identifier: BSD-3-Clause
"""Read and write bundled programs: a `.pte` with test cases, in a file of their own."""

from __future__ import annotations

import math
from typing import Any

from etx_schema._generated.bundled_program import (
    IDENTIFIER,
    Bool,
    BundledProgram,
    Double,
    Int,
    Tensor,
    Value,
)
from etx_schema.codec import Blob, Field
from etx_schema.decoder import Decoder
from etx_schema.dtypes import DTYPES, MAX_RANK, dtype_name
from etx_schema.errors import ProgramError
from etx_schema.files import PathLike, load_bytes

VERSION = 2
LARGEST = 2**31 - 2**16
_COUNTED = 64


class _Views(Decoder):
    """Leaves the program where it is: a view of the file, not a copy."""

    viewed: tuple[str, ...] = ("BundledProgram.program",)

    def vector(self, name: str, item: Field, offset: int) -> Any:
        if name not in self.viewed:
            return super().vector(name, item, offset)
        size = self.u32(offset)
        self.check(offset + 4, size, f"the {size} elements of {name}")
        self.spend(size + 4, offset)
        return self.view[offset + 4 : offset + 4 + size]


class _Checked(_Views):
    """Leaves all bytes where they are."""

    viewed = ("BundledProgram.program", "Tensor.data")


def is_bundle(view: Blob) -> bool:
    """Tell whether bytes begin as a bundled program does."""
    return bytes(memoryview(view)[4:8]) == IDENTIFIER.encode()


def program_of(view: memoryview) -> memoryview:
    """Return the `.pte` inside a bundled program, and any other bytes as they are.

    Raise ProgramError where anything of the bundle is not as `read_bundle` takes it: one that was
    cut behind its program is damaged, too.
    """
    if not is_bundle(view):
        return view
    found: Any = _read(_Checked(view, 0)).program
    return memoryview(found)


def read_bundle(source: PathLike | Blob) -> BundledProgram:
    """Read a bundled program, whose `program` is a view of the file; its values are as they say.

    Raise ProgramError where tensors do not have the bytes of their sizes, or a suite has no name.
    """
    return _read(_Views(load_bytes(source), 0))


def _read(decoder: Decoder) -> BundledProgram:
    bundle = decoder.root(BundledProgram, IDENTIFIER)
    if not bundle.program:
        raise ProgramError("the bundle holds no program")
    for number, suite in enumerate(bundle.method_test_suites):
        if suite.method_name is None:
            raise ProgramError(f"test suite {number} names no method")
        for index, case in enumerate(suite.test_cases):
            place = f"{suite.method_name}, case {index}"
            for word, values in (("input", case.inputs), ("output", case.expected_outputs)):
                for i, value in enumerate(values):
                    _check(value, f"{place}, {word} {i}")
    return bundle


def serialize_bundle(bundle: BundledProgram) -> bytes:
    """Return the bytes of the file, in which the program begins at a multiple of 32."""
    from etx_schema.encoder import encode

    size = len(bundle.program) + sum(map(_value_bytes, _values(bundle)))
    if size > LARGEST:
        raise ProgramError(
            f"program and test cases have {size:,} bytes; a bundle holds at most {LARGEST:,}: "
            "store weights in a .ptd file, or bundle fewer cases"
        )
    return encode(bundle, IDENTIFIER, by_size=False)


def _values(bundle: BundledProgram) -> list[Value]:
    cases = [case for suite in bundle.method_test_suites for case in suite.test_cases]
    return [value for case in cases for value in (*case.inputs, *case.expected_outputs)]


def _value_bytes(value: Value) -> int:
    return _COUNTED + (len(value.val.data) if isinstance(value.val, Tensor) else 0)


def _check(entry: Value, place: str) -> None:
    value = entry.val
    if isinstance(value, (Int, Bool, Double)):
        return
    if not isinstance(value, Tensor):
        raise ProgramError(f"{place}: expected a tensor or a number, found {_kind(value)}")
    sizes, order = value.sizes, value.dim_order
    if value.scalar_type not in DTYPES:
        raise ProgramError(f"{place}: unknown scalar type {int(value.scalar_type)}")
    if len(sizes) > MAX_RANK or any(size < 0 for size in sizes):
        raise ProgramError(f"{place}: a tensor has the sizes {sizes[: MAX_RANK + 1]}")
    if order and sorted(order) != list(range(len(sizes))):
        raise ProgramError(f"{place}: dim order {order[: MAX_RANK + 1]} of {len(sizes)} dimensions")
    expected = math.prod(sizes) * DTYPES[value.scalar_type][1]
    if len(value.data) != expected:
        shape = f"{dtype_name(value.scalar_type)}{sizes}"
        raise ProgramError(f"{place}: {len(value.data)} bytes, {shape} takes {expected}")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
