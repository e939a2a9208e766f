# SPDX-License-Identifier: BSD-3-Clause
"""Choose shapes of inputs within what a program allows."""

from __future__ import annotations

from collections.abc import Mapping

from etx_runtime.constraints import Bound, Constraints
from etx_runtime.errors import InputError
from etx_runtime.values import ValueInfo

SMALLEST, PROBES = "min", (1_000, 1_001)


def symbol_ranges(
    constraints: Constraints, inputs: tuple[ValueInfo, ...]
) -> dict[str, tuple[int, int | None, int]]:
    """Return least value, largest (None: any) and divisor of each symbol of a method."""
    ranges: dict[str, tuple[int, int | None, int]] = {}
    for bound in constraints.bounds:
        low, high = _limits(bound, inputs)
        if bound.expr is None:
            _narrow(ranges, bound.symbol, low, high, bound.divisor)
    for bound in constraints.bounds:
        if bound.expr is None or len(bound.expr.symbols) != 1:
            continue
        (symbol,) = bound.expr.symbols
        first, second = (bound.expr.evaluate({symbol: probe}) for probe in PROBES)
        if first is None or second is None or second <= first:
            continue
        low, high = _limits(bound, inputs)
        step, offset = second - first, first - (second - first) * PROBES[0]
        highest = None if high is None else (high - offset) // step
        _narrow(ranges, symbol, -((offset - low) // step), highest, 1)
    return ranges


def choose_symbols(
    constraints: Constraints,
    inputs: tuple[ValueInfo, ...],
    given: Mapping[str, int],
    extreme: str = "max",
) -> dict[str, int]:
    """Return a value for each symbol: the one given, else the least or the largest allowed.

    Raises InputError for a symbol that the method does not have and a value out of range.
    """
    ranges = symbol_ranges(constraints, inputs)
    for symbol, value in given.items():
        if symbol not in ranges:
            known = ", ".join(f"{name} ({_range(*row)})" for name, row in sorted(ranges.items()))
            raise InputError(f"unknown dimension '{symbol}'; the method has: {known or 'none'}")
        low, high, divisor = ranges[symbol]
        if value < low or (high is not None and value > high) or value % divisor:
            raise InputError(f"{symbol} is {value}, but must be {_range(low, high, divisor)}")
    chosen = dict(given)
    for symbol, (low, high, divisor) in ranges.items():
        smallest = -(-low // divisor) * divisor
        largest = smallest if high is None else high // divisor * divisor
        chosen.setdefault(symbol, smallest if extreme == SMALLEST else largest)
    return chosen


def shape_of(
    constraints: Constraints,
    inputs: tuple[ValueInfo, ...],
    index: int,
    symbols: Mapping[str, int],
) -> tuple[int, ...]:
    """Return the shape of tensor input `index` for values of the symbols."""
    shape = list(inputs[index].shape or ())
    for bound in constraints.bounds:
        if bound.input == index and bound.dim is not None and bound.dim < len(shape):
            size = size_of(bound, symbols)
            shape[bound.dim] = shape[bound.dim] if size is None else size
    return tuple(shape)


def size_of(bound: Bound, symbols: Mapping[str, int]) -> int | None:
    """Return the size that `bound` asks for, None where a symbol is not known."""
    if bound.expr is None:
        return symbols.get(bound.symbol)
    return bound.expr.evaluate(dict(symbols))


def _limits(bound: Bound, inputs: tuple[ValueInfo, ...]) -> tuple[int, int | None]:
    shape = inputs[bound.input].shape if bound.input < len(inputs) else None
    stored = (
        shape[bound.dim] if shape and bound.dim is not None and bound.dim < len(shape) else None
    )
    highs = [high for high in (bound.max, stored) if high is not None]
    return bound.min or 0, min(highs, default=None)


def _narrow(
    ranges: dict[str, tuple[int, int | None, int]],
    symbol: str,
    low: int,
    high: int | None,
    divisor: int,
) -> None:
    before_low, before_high, before_divisor = ranges.get(symbol, (0, None, 1))
    highs = [limit for limit in (before_high, high) if limit is not None]
    ranges[symbol] = (max(low, before_low), min(highs, default=None), max(divisor, before_divisor))


def _range(low: int, high: int | None, divisor: int) -> str:
    text = f"{low} to {high}" if high is not None else f"at least {low}"
    return text + (f", a multiple of {divisor}" if divisor > 1 else "")
