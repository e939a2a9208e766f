# SPDX-License-Identifier: BSD-3-Clause
"""Enforce what a program asks of its inputs (named data `etx/constraints`)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from etx_runtime.errors import InputError

KEY = "etx/constraints"
INVALID_ARGUMENT = 0x12
LONGEST = 2000

_NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.Compare),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub),
    *(ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq),
)
_PROBES = (1_000, 1_001, 1_002)

Given = tuple[int, ...] | float | None
"""The shape of a tensor, the value of a number, None for other inputs."""


class Expression(NamedTuple):
    """An integer expression, or a comparison of two, over symbols."""

    text: str
    code: CodeType
    symbols: frozenset[str]

    def evaluate(self, values: dict[str, int]) -> int | bool | None:
        """Compute it; None where a symbol is not known or a divisor is 0."""
        if not self.symbols <= values.keys():
            return None
        try:
            result = eval(self.code, {"__builtins__": {}}, values)
        except ZeroDivisionError:
            return None
        return result if isinstance(result, (int, bool)) else None


class Bound(NamedTuple):
    """What one dimension of an input, or the value of a number, must be."""

    input: int
    dim: int | None
    """None: the value of a number."""
    symbol: str
    min: int | None
    max: int | None
    divisor: int
    expr: Expression | None

    def __str__(self) -> str:
        limits = [f">= {self.min}"] if self.min else []
        limits += [f"<= {self.max}"] if self.max is not None else []
        limits += [f"a multiple of {self.divisor}"] if self.divisor > 1 else []
        name = self.expr.text if self.expr else self.symbol
        return f"{name} ({', '.join(limits)})" if limits else name


class Constraints(NamedTuple):
    """Names of a method's inputs, and the checks of their sizes and values."""

    names: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    guards: tuple[Expression, ...] = ()
    fixed: tuple[tuple[int, int, int], ...] = ()
    """Input, dimension and size where a shape is dynamic and this dimension is not."""

    def __bool__(self) -> bool:
        return bool(self.bounds or self.guards or self.fixed)

    def with_shapes(self, shapes: Mapping[int, tuple[int, ...]]) -> Constraints:
        """Add what is fixed in `shapes`, those of inputs that have other dimensions with bounds."""
        free = {(bound.input, bound.dim) for bound in self.bounds}
        fixed = (
            (index, dim, size)
            for index in sorted({index for index, dim in free if dim is not None})
            for dim, size in enumerate(shapes.get(index, ()))
            if (index, dim) not in free
        )
        return self._replace(fixed=tuple(fixed))

    def check(self, given: Sequence[Given]) -> None:
        """Raise InputError for the first size or value that is not as the program needs it."""
        for index, dim, expected in self.fixed:
            shape = given[index]
            if isinstance(shape, tuple) and dim < len(shape) and shape[dim] != expected:
                raise InputError(
                    f"{self._label(index)}: dimension {dim} is {shape[dim]}, but must be "
                    f"{expected} (shape given: {shape})",
                    INVALID_ARGUMENT,
                    index=index,
                )
        values: dict[str, int] = {}
        places: dict[str, Bound] = {}
        for bound in self.bounds:
            size = _size(bound, given)
            if size is None:
                continue
            self._check_range(bound, size, given)
            if bound.expr is None and values.setdefault(bound.symbol, size) != size:
                first = places[bound.symbol]
                where = f"{_what(first)} of {self._label(first.input)}"
                self._fail(bound, given, f"must equal {where}, which is {values[bound.symbol]}")
            if bound.expr is None:
                places.setdefault(bound.symbol, bound)
        derived = [bound for bound in self.bounds if bound.expr is not None]
        for bound in derived:
            self._solve(bound, given, values)
        for bound in derived:
            self._check_derived(bound, given, values)
        for guard in self.guards:
            if guard.evaluate(values) is False:
                self._fail_guard(guard, values)

    def _check_range(self, bound: Bound, size: int, given: Sequence[Given]) -> None:
        if bound.min is not None and size < bound.min:
            self._fail(bound, given, f"must be at least {bound.min}")
        if bound.max is not None and size > bound.max:
            self._fail(bound, given, f"must be at most {bound.max}")
        if bound.divisor > 1 and size % bound.divisor:
            self._fail(bound, given, f"must be a multiple of {bound.divisor}")

    def _solve(self, bound: Bound, given: Sequence[Given], values: dict[str, int]) -> None:
        """Find a symbol that only a linear expression of just it tells."""
        expr, size = bound.expr, _size(bound, given)
        if expr is None or size is None or len(expr.symbols) != 1 or expr.symbols <= values.keys():
            return
        (symbol,) = expr.symbols
        low, middle, high = (expr.evaluate({symbol: probe}) for probe in _PROBES)
        if low is None or middle is None or high is None or high - middle != middle - low:
            return
        step = middle - low
        offset = low - step * _PROBES[0]
        if step == 0:
            return
        if (size - offset) % step:
            self._fail(bound, given, f"must be {expr.text} for an integer {symbol}")
        values[symbol] = (size - offset) // step

    def _check_derived(self, bound: Bound, given: Sequence[Given], values: dict[str, int]) -> None:
        size = _size(bound, given)
        expected = None if bound.expr is None else bound.expr.evaluate(values)
        if size is None or expected is None or expected == size or bound.expr is None:
            return
        known = ", ".join(f"{name} = {values[name]}" for name in sorted(bound.expr.symbols))
        self._fail(bound, given, f"must be {bound.expr.text} = {expected} with {known}")

    def _label(self, index: int) -> str:
        return f"input {index} ('{self.names[index]}')"

    def _fail(self, bound: Bound, given: Sequence[Given], reason: str) -> None:
        shape = given[bound.input]
        named = _named(bound)
        shown = f" (shape given: {shape}{named})" if bound.dim is not None else ""
        raise InputError(
            f"{self._label(bound.input)}: {_what(bound)} is {_size(bound, given)}, but {reason}"
            f"{shown}",
            INVALID_ARGUMENT,
            index=bound.input,
        )

    def _fail_guard(self, guard: Expression, values: dict[str, int]) -> None:
        places = []
        index = -1
        for symbol in sorted(guard.symbols):
            found = [bound for bound in self.bounds if bound.symbol == symbol]
            where = f" ({_what(found[0])} of {self._label(found[0].input)})" if found else ""
            index = found[0].input if found and index < 0 else index
            places.append(f"{symbol} = {values[symbol]}{where}")
        raise InputError(
            f"the inputs must satisfy {guard.text}, but {', '.join(places)}",
            INVALID_ARGUMENT,
            index=index,
        )


_NUMBERED = r"\b[suz]\d+\b"
"""Names that torch gives to sizes."""


def _named(bound: Bound) -> str:
    """Return what the author calls the size."""
    text = bound.expr.text if bound.expr else bound.symbol
    return "" if re.search(_NUMBERED, text) else f"; {_what(bound)} is '{text}'"


def _what(bound: Bound) -> str:
    return "the value" if bound.dim is None else f"dimension {bound.dim}"


def _size(bound: Bound, given: Sequence[Given]) -> int | None:
    value = given[bound.input] if bound.input < len(given) else None
    if isinstance(value, tuple):
        is_there = bound.dim is not None and bound.dim < len(value)
        return value[bound.dim] if is_there and bound.dim is not None else None
    return value if bound.dim is None and isinstance(value, int) else None


def parse(text: Any) -> Expression | None:
    """Read an expression; None where it is not of the syntax that docs/program-format.md allows."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    try:
        tree = ast.parse(text, mode="eval")
        nodes = list(ast.walk(tree))
        is_known = all(isinstance(node, _NODES) for node in nodes)
        numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
        if not is_known or not all(type(number) is int for number in numbers):
            return None
        code = compile(tree, "<constraint>", "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    symbols = frozenset(node.id for node in nodes if isinstance(node, ast.Name))
    return Expression(ast.unparse(tree), code, symbols)


def read(data: bytes | None) -> dict[str, Constraints]:
    """Read the constraints of all methods; what is not as specified counts as absent."""
    try:
        document = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return {}
    methods = document.items() if isinstance(document, dict) else ()
    return {name: _read_method(entry) for name, entry in methods if isinstance(entry, dict)}


def _read_method(entry: dict[str, Any]) -> Constraints:
    names: list[str] = []
    bounds: list[Bound] = []
    for index, row in enumerate(_rows(entry.get("inputs"))):
        row = row if isinstance(row, dict) else {}
        names.append(str(row.get("name") or ""))
        entries = [*enumerate(_rows(row.get("dims"))), (None, row.get("value"))]
        for position, dim in entries:
            if isinstance(dim, dict) and isinstance(dim.get("symbol"), str):
                bounds.append(_read_bound(index, position, dim))
    guards = [parse(text) for text in _rows(entry.get("guards"))]
    known = tuple(guard for guard in guards if guard is not None)
    return Constraints(tuple(names), tuple(bounds), known)


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_bound(index: int, position: int | None, row: dict[str, Any]) -> Bound:
    low, high, divisor = (_integer(row.get(key)) for key in ("min", "max", "divisor"))
    expr, symbol = parse(row.get("expr")), row["symbol"]
    if expr is None and row.get("expr") is not None:
        symbol = f"{row['expr']} at {index}, {position}"
    return Bound(index, position, symbol, low, high, divisor or 1, expr)


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
