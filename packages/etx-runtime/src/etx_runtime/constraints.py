# SPDX-License-Identifier: BSD-3-Clause
"""Enforce what a program asks of the shapes of its inputs (named data `etx/constraints`)."""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from etx_runtime.errors import InputError

KEY = "etx/constraints"
INVALID_ARGUMENT = 0x12

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}


@dataclass(frozen=True)
class Dim:
    """What one dimension of an input must be."""

    input: int
    dim: int
    symbol: str
    min: int | None
    max: int | None
    divisor: int
    expr: ast.expr | None


@dataclass(frozen=True)
class Constraints:
    """Names of a method's inputs and the checks of their dimensions."""

    names: tuple[str, ...] = ()
    dims: tuple[Dim, ...] = ()

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise InputError for the first dimension that is not as the program needs it."""
        values: dict[str, tuple[int, Dim]] = {}
        sizes = [self._size(dim, inputs) for dim in self.dims]
        for dim, size in zip(self.dims, sizes, strict=True):
            if size is None:
                continue
            self._check_range(dim, size, inputs)
            if dim.expr is None:
                first = values.setdefault(dim.symbol, (size, dim))
                if first[0] != size:
                    where = f"dimension {first[1].dim} of {self._label(first[1].input)}"
                    self._fail(dim, inputs, f"must equal {where}, which is {first[0]}")
        for dim, size in zip(self.dims, sizes, strict=True):
            if size is None or dim.expr is None or dim.symbol not in values:
                continue
            expected = evaluate(dim.expr, {dim.symbol: values[dim.symbol][0]})
            if expected is not None and expected != size:
                given = f"with {dim.symbol} = {values[dim.symbol][0]}"
                self._fail(dim, inputs, f"must be {ast.unparse(dim.expr)} = {expected} {given}")

    def _check_range(self, dim: Dim, size: int, inputs: Sequence[Any]) -> None:
        if dim.min is not None and size < dim.min:
            self._fail(dim, inputs, f"must be at least {dim.min}")
        if dim.max is not None and size > dim.max:
            self._fail(dim, inputs, f"must be at most {dim.max}")
        if dim.divisor > 1 and size % dim.divisor:
            self._fail(dim, inputs, f"must be a multiple of {dim.divisor}")

    def _size(self, dim: Dim, inputs: Sequence[Any]) -> int | None:
        shape = getattr(inputs[dim.input], "shape", None) if dim.input < len(inputs) else None
        return int(shape[dim.dim]) if shape is not None and dim.dim < len(shape) else None

    def _label(self, index: int) -> str:
        return f"input {index} ('{self.names[index]}')"

    def _fail(self, dim: Dim, inputs: Sequence[Any], reason: str) -> None:
        shape = tuple(int(size) for size in inputs[dim.input].shape)
        raise InputError(
            f"{self._label(dim.input)}: dimension {dim.dim} is {shape[dim.dim]}, but {reason} "
            f"(shape given: {shape})",
            INVALID_ARGUMENT,
            index=dim.input,
        )


def evaluate(expr: ast.expr, values: dict[str, int]) -> int | None:
    """Compute an integer expression over symbols; None when it is not one."""
    if isinstance(expr, ast.Constant) and isinstance(expr.value, int):
        return expr.value
    if isinstance(expr, ast.Name):
        return values.get(expr.id)
    operands = []
    if isinstance(expr, ast.BinOp):
        operands = [evaluate(expr.left, values), evaluate(expr.right, values)]
    elif isinstance(expr, ast.UnaryOp):
        operands = [evaluate(expr.operand, values)]
    apply = _OPERATORS.get(type(getattr(expr, "op", None)))  # type: ignore[arg-type]
    if apply is None or None in operands:
        return None
    try:
        return int(apply(*operands))
    except ZeroDivisionError:
        return None


def read(data: bytes | None) -> dict[str, Constraints]:
    """Read the constraints of all methods; what is not as specified counts as absent."""
    try:
        document = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return {}
    methods = document.items() if isinstance(document, dict) else ()
    return {name: _read_method(entry) for name, entry in methods if isinstance(entry, dict)}


def _read_method(entry: dict[str, Any]) -> Constraints:
    names, dims = [], []
    rows = entry.get("inputs")
    for index, row in enumerate(rows if isinstance(rows, list) else []):
        row = row if isinstance(row, dict) else {}
        names.append(str(row.get("name") or ""))
        for position, dim in enumerate(row.get("dims") or []):
            if isinstance(dim, dict) and isinstance(dim.get("symbol"), str):
                dims.append(_read_dim(index, position, dim))
    return Constraints(tuple(names), tuple(dims))


def _read_dim(index: int, position: int, row: dict[str, Any]) -> Dim:
    low, high, divisor = (_integer(row.get(key)) for key in ("min", "max", "divisor"))
    return Dim(index, position, row["symbol"], low, high, divisor or 1, _parse(row.get("expr")))


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parse(text: Any) -> ast.expr | None:
    if not isinstance(text, str):
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
