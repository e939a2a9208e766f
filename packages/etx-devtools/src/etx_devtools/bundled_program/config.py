# SPDX-License-Identifier: BSD-3-Clause
"""The test cases of a method: inputs, and what it should return for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from etx_schema import EtxError

from etx_devtools.bundled_program.tensors import is_tensor

__all__ = ["MethodTestCase", "MethodTestSuite"]


class MethodTestCase:
    """Inputs of one call and the outputs it should give, flat; None where nothing is expected.

    Values are NumPy arrays, torch tensors, ints, floats and bools, in any nesting of sequences and
    dicts.
    """

    def __init__(self, inputs: Sequence[Any], expected_outputs: Any = None) -> None:
        self.inputs = _flat(inputs, "input")
        self.expected_outputs = (
            None if expected_outputs is None else _flat(expected_outputs, "expected output")
        )

    def __repr__(self) -> str:
        return f"MethodTestCase(inputs={self.inputs!r}, expected_outputs={self.expected_outputs!r})"


@dataclass
class MethodTestSuite:
    """The test cases of one method."""

    method_name: str
    test_cases: Sequence[MethodTestCase] = field(default_factory=list)


def _flat(values: Any, word: str) -> list[Any]:
    found = list(_leaves(values))
    for index, value in enumerate(found):
        if not (is_tensor(value) or isinstance(value, (bool, int, float))):
            raise EtxError(
                f"{word} {index} is a {type(value).__name__}; "
                "a bundle holds tensors, ints, floats and bools"
            )
    return found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
