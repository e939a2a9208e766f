# SPDX-License-Identifier: BSD-3-Clause
"""A bundled program: what is bundled fits the program, or is refused by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from etx_schema import Blob, EtxError, ProgramError, read_pte, serialize_bundle
from etx_schema._generated import bundled_program as tables
from etx_schema.bundle import VERSION, read_bundle
from etx_schema.files import PathLike, load_bytes, write_atomically

from etx_devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from etx_devtools.bundled_program.signature import Signature, signatures
from etx_devtools.bundled_program.tensors import to_array

__all__ = ["BundledProgram"]


class BundledProgram:
    """A program and its test suites; raises EtxError where a case does not fit the program.

    `executorch_program` is what `to_executorch()` returned, or the bytes or path of a `.pte`;
    `pte_file_path` may be given in its place.
    """

    def __init__(
        self,
        executorch_program: Any = None,
        method_test_suites: Sequence[MethodTestSuite] = (),
        pte_file_path: PathLike | None = None,
    ) -> None:
        if (executorch_program is None) == (pte_file_path is None):
            raise EtxError("give either executorch_program or pte_file_path")
        source = executorch_program if pte_file_path is None else pte_file_path
        self.program: Blob = _bytes_of(source)
        self.method_test_suites = list(method_test_suites)
        self._signatures = signatures(read_pte(self.program))
        self.check()

    @property
    def methods(self) -> list[str]:
        """The names of the program's methods."""
        return list(self._signatures)

    def signature(self, method: str) -> Signature:
        """Return what a method takes and returns."""
        if method not in self._signatures:
            known = ", ".join(sorted(self._signatures))
            raise EtxError(f"the program has no method {method!r} (it has: {known})")
        return self._signatures[method]

    def add(self, method: str, cases: Sequence[MethodTestCase]) -> None:
        """Add test cases to those of a method."""
        for suite in self.method_test_suites:
            if suite.method_name == method:
                suite.test_cases = [*suite.test_cases, *cases]
                return
        self.method_test_suites.append(MethodTestSuite(method, list(cases)))

    def check(self) -> None:
        """Raise EtxError for a suite or case that does not fit the program."""
        bundled = [suite.method_name for suite in self.method_test_suites]
        for name in bundled:
            self.signature(name)
            if bundled.count(name) > 1:
                raise EtxError(f"method {name!r} has several test suites; give it one")
        for suite in self.method_test_suites:
            signature = self._signatures[suite.method_name]
            for index, case in enumerate(suite.test_cases):
                place = f"{suite.method_name}, case {index}"
                signature.inputs.check(case.inputs, place)
                if case.expected_outputs:
                    signature.outputs.check(case.expected_outputs, place)

    def serialize_to_schema(self) -> tables.BundledProgram:
        """Return the tables of the file."""
        self.check()
        suites = [
            tables.BundledMethodTestSuite(
                method_name=suite.method_name,
                test_cases=[
                    _pack(case, self._signatures[suite.method_name]) for case in suite.test_cases
                ],
            )
            for suite in self.method_test_suites
        ]
        program: Any = self.program
        return tables.BundledProgram(version=VERSION, method_test_suites=suites, program=program)

    def serialize(self) -> bytes:
        """Return the bytes of the `.bpte`."""
        return serialize_bundle(self.serialize_to_schema())

    def save(self, path: PathLike) -> None:
        """Write the `.bpte`, whole or not at all."""
        write_atomically(path, [self.serialize()])

    @classmethod
    def load(cls, source: PathLike | Blob) -> BundledProgram:
        """Read a `.bpte`; raise ProgramError naming the byte, or the case and value, at fault."""
        bundle = read_bundle(source)
        suites = [
            MethodTestSuite(suite.method_name or "", [_case(case) for case in suite.test_cases])
            for suite in bundle.method_test_suites
        ]
        return cls(bundle.program, suites)


def _pack(case: MethodTestCase, signature: Signature) -> tables.BundledMethodTestCase:
    expected = case.expected_outputs
    return tables.BundledMethodTestCase(
        inputs=signature.inputs.pack(case.inputs),
        expected_outputs=signature.outputs.pack(expected) if expected else [],
    )


def _case(case: tables.BundledMethodTestCase) -> MethodTestCase:
    expected = [value_of(entry) for entry in case.expected_outputs]
    return MethodTestCase([value_of(entry) for entry in case.inputs], expected or None)


def value_of(entry: tables.Value) -> Any:
    """Return a bundled value: an array, or a number."""
    value = entry.val
    if isinstance(value, tables.Tensor):
        return to_array(value)
    if isinstance(value, tables.Int):
        return value.int_val
    if isinstance(value, tables.Bool):
        return value.bool_val
    if isinstance(value, tables.Double):
        return value.double_val
    raise ProgramError("a bundled value is neither a tensor nor a number")


def _bytes_of(source: Any) -> Blob:
    """Return the bytes of a `.pte`, from a program, a path or bytes."""
    content = getattr(source, "buffer", None)
    if content is None:
        content = source
    if not isinstance(content, (str, os.PathLike, bytes, bytearray, memoryview)):
        raise EtxError(
            f"expected a program of to_executorch(), or the path or bytes of a .pte, "
            f"got a {type(source).__name__}"
        )
    return load_bytes(content)
