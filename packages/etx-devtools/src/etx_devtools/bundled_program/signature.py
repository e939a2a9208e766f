# SPDX-License-Identifier: BSD-3-Clause
"""What a method takes and returns, and whether values fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from etx_schema import (
    Bool,
    Double,
    EtxError,
    ExecutionPlan,
    Int,
    PteFile,
    Tensor,
    TensorShapeDynamism,
    dtype_name,
)
from etx_schema._generated import bundled_program as tables
from etx_schema.problem import CONSTRAINTS_KEY, read_json

from etx_devtools.bundled_program.tensors import dtype_of, is_tensor, to_table


@dataclass(frozen=True)
class Side:
    """The inputs, or the outputs, of a method."""

    word: str
    values: list[Any]
    names: list[str]

    def check(self, given: Sequence[Any], place: str) -> None:
        """Raise EtxError naming the value of one call that does not fit."""
        if len(given) != len(self.values):
            raise EtxError(
                f"{place}: {len(given)} {self.word}s given, the method has {len(self.values)}"
                f" ({', '.join(map(self.describe, range(len(self.values)))) or 'none'})"
            )
        for index, value in enumerate(given):
            reason = misfit(value, self.values[index])
            if reason:
                raise EtxError(f"{place}, {self.word} {self.describe(index)}: {reason}")

    def pack(self, given: Sequence[Any]) -> list[tables.Value]:
        """Return values that fit as a bundle holds them."""
        return [_pack(*pair) for pair in zip(given, self.values, strict=True)]

    def describe(self, index: int) -> str:
        """Return the index, name and type of a value."""
        name = self.names[index]
        return f"{index}{f' {name!r}' if name else ''} ({describe(self.values[index])})"


@dataclass(frozen=True)
class Signature:
    """What a method takes and returns."""

    inputs: Side
    outputs: Side


def signatures(pte: PteFile) -> dict[str, Signature]:
    """Return the signature of each method by its name."""
    rows = read_json(pte.named_data, CONSTRAINTS_KEY)
    found = {}
    for plan in pte.program.execution_plan:
        inputs = _values(plan, plan.inputs)
        outputs = _values(plan, plan.outputs)
        names = _names(rows.get(plan.name or ""), len(inputs))
        found[plan.name or ""] = Signature(
            Side("input", inputs, names), Side("expected output", outputs, [""] * len(outputs))
        )
    return found


def _values(plan: ExecutionPlan, indices: Sequence[int]) -> list[Any]:
    count = len(plan.values)
    wrong = [index for index in indices if not 0 <= index < count]
    if wrong:
        raise EtxError(f"method {plan.name!r} names value {wrong[0]}, there are {count}")
    found = [plan.values[index].val for index in indices]
    for index, value in zip(indices, found, strict=True):
        order = value.dim_order if isinstance(value, Tensor) else []
        if order and sorted(order) != list(range(len(order))):
            raise EtxError(f"method {plan.name!r}, value {index}: the dim order is {order}")
    return found


def _names(method: Any, count: int) -> list[str]:
    rows = method.get("inputs") if isinstance(method, dict) else None
    names = [row.get("name") if isinstance(row, dict) else "" for row in rows or ()]
    return [name if isinstance(name, str) else "" for name in names[:count]] + [""] * (
        count - len(names)
    )


def describe(value: Any) -> str:
    """Say what the program has in a place: a dtype with sizes, or a type."""
    if not isinstance(value, Tensor):
        return "nothing" if value is None else type(value).__name__
    mark = "" if value.shape_dynamism == TensorShapeDynamism.STATIC else "<="
    sizes = ", ".join(f"{mark}{size}" for size in value.sizes)
    return f"{dtype_name(value.scalar_type)}[{sizes}]"


def misfit(given: Any, expected: Any) -> str:
    """Return why a value does not go where the program has `expected`, empty where it does."""
    if isinstance(expected, Tensor):
        if not is_tensor(given):
            return f"expected a tensor, got {_kind(given)}"
        name, shape = dtype_of(given), [int(size) for size in given.shape]
        if name != dtype_name(expected.scalar_type):
            return f"expected {dtype_name(expected.scalar_type)}, got {name}"
        static = expected.shape_dynamism == TensorShapeDynamism.STATIC
        fits = len(shape) == len(expected.sizes) and all(
            size == limit if static else size <= limit
            for size, limit in zip(shape, expected.sizes, strict=True)
        )
        return "" if fits else f"got the shape {shape}"
    kinds = {Int: int, Double: float, Bool: bool}
    kind = kinds.get(type(expected))
    if kind is None:
        return f"a bundle holds no {'None' if expected is None else type(expected).__name__}"
    number = given.item() if isinstance(given, np.generic) else given
    if type(number) is kind or (kind is float and type(number) is int):
        return ""
    return f"expected a {kind.__name__}, got {_kind(given)}"


def _kind(given: Any) -> str:
    return f"a tensor {dtype_of(given)}{list(given.shape)}" if is_tensor(given) else repr(given)


def _pack(given: Any, expected: Any) -> tables.Value:
    if isinstance(expected, Tensor):
        return tables.Value(val=to_table(given, expected.dim_order))
    number = given.item() if isinstance(given, np.generic) else given
    if isinstance(expected, Int):
        return tables.Value(val=tables.Int(int_val=number))
    if isinstance(expected, Bool):
        return tables.Value(val=tables.Bool(bool_val=number))
    return tables.Value(val=tables.Double(double_val=float(number)))
