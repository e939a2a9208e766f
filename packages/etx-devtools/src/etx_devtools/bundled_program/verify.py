# SPDX-License-Identifier: BSD-3-Clause
"""Run the test cases of a bundled program and say how far each output is from what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from etx_schema import Blob, EtxError
from etx_schema.files import PathLike

from etx_devtools.bundled_program.config import MethodTestCase
from etx_devtools.bundled_program.core import BundledProgram
from etx_devtools.bundled_program.tensors import Bits, as_array, is_tensor

__all__ = ["Tolerance", "Verdict", "verify"]


@dataclass(frozen=True)
class Tolerance:
    """A difference of `atol + rtol * |expected|` is allowed, in some outputs another one.

    Of integers it is `atol`; bools must be the same.
    """

    atol: float = 1e-5
    rtol: float = 1e-5
    by_output: Mapping[int, tuple[float | None, float | None]] = field(default_factory=dict)
    """(atol, rtol) of an output by its index, None where the common one holds."""

    def of(self, output: int) -> tuple[float, float]:
        """Return atol and rtol of an output."""
        atol, rtol = self.by_output.get(output, (None, None))
        return self.atol if atol is None else atol, self.rtol if rtol is None else rtol


@dataclass(frozen=True)
class Verdict:
    """One output of one test case; `output` is -1 where the whole case is meant.

    Largest differences are None where the output was not compared as numbers.
    """

    method: str
    case: int
    output: int
    passed: bool
    reason: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    at: tuple[int, ...] = ()
    got: complex | None = None
    expected: complex | None = None
    atol: float | None = None
    rtol: float | None = None
    compared: bool = True
    """False where the case has no expected outputs: it was only run."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return vars(self) | {"at": list(self.at)}


def verify(
    source: BundledProgram | PathLike | Blob,
    *,
    method: str | None = None,
    case: int | None = None,
    tolerance: Tolerance | None = None,
    data: Sequence[Any] = (),
) -> list[Verdict]:
    """Run all test cases, or those chosen, each with the buffers' initial values.

    `data` are `.ptd` files with weights. Needs etx-runtime. An output that is wrong, and a case
    that cannot be run, are verdicts; a damaged file, a case that does not fit the program, and a
    choice that is not there raise EtxError.
    """
    bundle = source if isinstance(source, BundledProgram) else BundledProgram.load(source)
    found: list[Verdict] = []
    program = _runtime().load_program(bundle.program, data_paths=data)
    methods: dict[str, Any] = {}
    cases = list(chosen(bundle, method, case))
    _check_outputs(tolerance, max(len(test.expected_outputs or ()) for _, _, test in cases))
    for name, number, test in cases:
        if name not in methods:
            methods = {name: program.load_method(name)}
        methods[name].reset_state()
        found += _verdicts(methods[name], name, number, test, tolerance or Tolerance())
    return found


def _check_outputs(tolerance: Tolerance | None, count: int) -> None:
    for output in tolerance.by_output if tolerance is not None else ():
        if not 0 <= output < count:
            last = f"outputs are 0 to {count - 1}" if count else "there are no expected outputs"
            raise EtxError(f"a tolerance of output {output}: {last}")


def chosen(
    bundle: BundledProgram, method: str | None, case: int | None
) -> Iterator[tuple[str, int, MethodTestCase]]:
    """Yield method, number and test case of those chosen; raise EtxError where there is none."""
    suites = {suite.method_name: suite.test_cases for suite in bundle.method_test_suites}
    if not any(suites.values()):
        raise EtxError("the bundle holds no test cases")
    if method is not None and method not in suites:
        known = ", ".join(suites)
        raise EtxError(f"the bundle has no test cases of method {method!r} (it has: {known})")
    count = 0
    for name, cases in suites.items():
        if method not in (None, name):
            continue
        for number, test in enumerate(cases):
            if case in (None, number):
                count += 1
                yield name, number, test
    if not count:
        most = max(len(cases) for name, cases in suites.items() if method in (None, name))
        raise EtxError(f"there is no test case {case}; they are 0 to {most - 1}")


def _runtime() -> Any:
    try:
        from etx_runtime import Runtime
    except ImportError as error:
        raise EtxError(
            f"test cases are run by etx-runtime, which cannot be imported ({error}); install "
            "etx-runtime and etx-kernels-portable"
        ) from error
    return Runtime.get()


def _verdicts(
    loaded: Any, name: str, number: int, test: MethodTestCase, tolerance: Tolerance
) -> Iterator[Verdict]:
    from etx_runtime import RuntimeFailure

    try:
        outputs = loaded.execute([runnable(value) for value in test.inputs])
    except RuntimeFailure as error:
        yield Verdict(name, number, -1, False, f"it does not run: {error}")
        return
    if not test.expected_outputs:
        yield Verdict(name, number, -1, True, "no expected outputs: run only", compared=False)
        return
    infos = loaded.outputs
    for index, expected in enumerate(test.expected_outputs):
        atol, rtol = tolerance.of(index)
        row = _compare(outputs[index], infos[index].dtype or "", expected, atol, rtol)
        numbers = "largest_difference" in row
        yield Verdict(
            name,
            number,
            index,
            row["matches"],
            row.get("reason", ""),
            row["largest_difference"] if numbers else None,
            row["largest_relative"] if numbers else None,
            tuple(row.get("at", ())),
            row.get("got"),
            row.get("expected"),
            atol,
            rtol,
        )


def runnable(value: Any) -> Any:
    """Return a value of a test case as a method takes it."""
    value = as_array(value)
    if isinstance(value, Bits):
        from etx_runtime import bits

        return bits.of_type(value.bits, value.dtype)
    return value


def _compare(value: Any, dtype: str, expected: Any, atol: float, rtol: float) -> dict[str, Any]:
    """Judge by `etx::compare`, each side in the dim order it lies in."""
    from etx_runtime.commands.expected import compare_tensor

    expected = as_array(expected)
    if isinstance(expected, Bits):
        return compare_tensor(value, dtype, expected.bits, atol, rtol)
    if is_tensor(expected):
        return compare_tensor(value, dtype, np.asarray(expected), atol, rtol)
    return compare_tensor(np.asarray(value), "", np.asarray(expected), atol, rtol)
