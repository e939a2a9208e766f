# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, layout and bounds of tensors as the file stores them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from etx_schema.dtypes import DTYPES
from torch._prims_common import is_channels_last_contiguous_or_false, is_contiguous_or_false
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from etx_exir.errors import EmitError, UnboundedError

LARGEST = 2**31 - 1

SCALAR_TYPES: dict[torch.dtype, int] = {
    getattr(torch, name): number
    for number, (name, _) in DTYPES.items()
    if not name.startswith(("q", "bits"))  # quantized tensors of old, which no graph holds
}

MEMORY_FORMATS: dict[torch.memory_format, int] = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}

LAYOUTS: dict[torch.layout, int] = {torch.strided: 0, torch.sparse_coo: 1}


@dataclass(frozen=True)
class Shape:
    """Sizes as bounds, the layout, and whether any size is symbolic."""

    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamic: bool
    itemsize: int

    @property
    def nbytes(self) -> int:
        """Return the bytes at the upper bound."""
        return math.prod(self.sizes) * self.itemsize

    @property
    def contiguous(self) -> bool:
        """Tell whether memory order is the order of the dimensions."""
        return self.dim_order == tuple(range(len(self.sizes)))


class Bounds:
    """Upper bounds of symbolic sizes."""

    def __init__(self, ranges: Mapping[sympy.Symbol, ValueRanges[Any]]) -> None:
        self.ranges = dict(ranges)
        self.origins: dict[sympy.Symbol, str] = {}
        self._known: dict[Any, int] = {}

    def name_origin(self, symbol: sympy.Symbol, text: str) -> None:
        """Remember in words where `symbol` comes from."""
        self.origins.setdefault(symbol, text)

    def upper(self, size: int | torch.SymInt, where: Callable[[], str]) -> int:
        """Return the largest value of `size`, or fail with the dimension's name."""
        if isinstance(size, int):
            return size
        expr = size.node.expr
        if expr not in self._known:
            self._known[expr] = self._upper(size, where)
        return self._known[expr]

    def lower(self, size: int | torch.SymInt) -> int:
        """Return the smallest value of `size`, 0 where nothing is known."""
        if isinstance(size, int):
            return size
        lower = bound_sympy(size.node.expr, self._ranges(size)).lower
        return int(lower) if bool(lower > 0) else 0

    def _ranges(self, size: torch.SymInt) -> dict[sympy.Symbol, ValueRanges[Any]]:
        ranges, shape_env = {}, size.node.shape_env
        for symbol in size.node.expr.free_symbols:
            found = self.ranges.get(symbol)
            if found is None and shape_env is not None:
                found = shape_env.var_to_range.get(symbol)
            if found is not None:
                ranges[symbol] = found
        return ranges

    def _upper(self, size: torch.SymInt, where: Callable[[], str]) -> int:
        expr, ranges = size.node.expr, self._ranges(size)
        upper = bound_sympy(expr, ranges).upper
        if not upper <= LARGEST:
            upper = bound_sympy(_exact(expr), ranges).upper
        if bool(upper <= LARGEST):
            return int(upper)
        free = sorted(expr.free_symbols, key=str)
        loose = [s for s in free if s not in ranges or not ranges[s].upper <= LARGEST] or free
        names = ", ".join(f"{s} ({self.origins.get(s, 'computed at run time')})" for s in loose)
        for symbol in loose:
            # What follows is emitted as if it were bounded, to find what else is wrong.
            least = ranges[symbol].lower if symbol in ranges else 0
            self.ranges[symbol] = ValueRanges(least, max(least, 1))
        self._known[expr] = 1
        raise UnboundedError(
            where(),
            f"the size {expr} has no upper bound, so its memory cannot be planned;"
            f" unbounded: {names}",
            "Give the dimension a maximum, as in torch.export.Dim(name, max=...), or state it in"
            " the model with torch._check(n <= ...)",
        )


def _exact(expr: sympy.Expr) -> sympy.Expr:
    """Divide where nothing is left over: ``(s**2)//s`` is ``s``, with a finite bound."""
    if not expr.args:
        return expr
    parts = [_exact(part) for part in expr.args]
    if expr.func is FloorDiv:
        quotient = sympy.cancel(parts[0] / parts[1])
        free = sorted(quotient.free_symbols, key=str)
        if quotient.is_polynomial() and free:
            numbers = sympy.Poly(quotient, *free).coeffs()
            return quotient if all(n.is_integer for n in numbers) else expr.func(*parts)
    return expr.func(*parts)


def dim_order(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the dimensions from outermost to innermost."""
    plain = tuple(range(tensor.dim()))
    if any(isinstance(s, int) and s == 0 for s in tensor.shape) or is_contiguous_or_false(tensor):
        return plain
    if is_channels_last_contiguous_or_false(tensor):
        return (0, *plain[2:], 1)
    return by_strides(tensor)


def by_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the dimensions by their strides; one that only a run knows counts as large."""
    strides = tensor.stride()
    return tuple(sorted(range(tensor.dim()), key=lambda d: (-_hint(strides[d]), d)))


def _hint(size: int | torch.SymInt) -> int:
    if isinstance(size, int):
        return size
    hint = size.node.hint
    return int(hint) if hint is not None else 1 << 30


def shape_of(tensor: torch.Tensor, bounds: Bounds, where: Callable[[], str]) -> Shape:
    """Return the stored shape of `tensor`; `where` starts the message when it has no bound."""
    sizes = tuple(bounds.upper(size, where) for size in tensor.shape)
    dynamic = any(not isinstance(size, int) for size in tensor.shape)
    if tensor.dim() > 16:
        raise EmitError(
            f"{where()}: a tensor of {tensor.dim()} dimensions; a file holds at most 16"
        )
    return Shape(sizes, dim_order(tensor), dynamic, tensor.dtype.itemsize)


def same_sizes(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Tell whether two shapes are the same, symbols by their expressions."""
    return len(one) == len(other) and all(
        _expr(a) == _expr(b) for a, b in zip(one, other, strict=True)
    )


def _expr(size: int | torch.SymInt) -> Any:
    return size if isinstance(size, int) else size.node.expr
