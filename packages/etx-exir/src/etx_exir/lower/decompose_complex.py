# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of complex numbers into operators on their real and imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node
from torch.utils import _pytree as pytree

__all__ = ["COMPLEX", "PARTS", "complex_by_parts", "is_complex_call"]

aten = torch.ops.aten

Part = Any
REAL = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}


def _parts(value: Any, dtype: torch.dtype) -> tuple[Part, Part]:
    """Return the parts in the real dtype of the result; a real number has no imaginary one."""
    if not isinstance(value, Tensor):
        return (value.real, value.imag) if isinstance(value, complex) else (value, None)
    if not value.is_complex():
        return value.to(dtype), None
    pairs = torch.view_as_real(value).to(dtype)
    return pairs.select(-1, 0), pairs.select(-1, 1)


def _operands(self: Any, other: Any) -> tuple[Part, Part, Part, Part]:
    dtype = REAL[torch.result_type(self, other)]
    return *_parts(self, dtype), *_parts(other, dtype)


def _joined(real: Tensor, imaginary: Part) -> Tensor:
    if not isinstance(imaginary, Tensor):
        imaginary = torch.full_like(real, imaginary or 0.0)
    broadcast: Callable[..., Any] = torch.broadcast_tensors
    pairs = torch.stack(broadcast(real, imaginary), -1)
    return torch.view_as_complex(pairs)


def _times(a: Part, b: Part) -> Part:
    return None if a is None or b is None else a * b


def _plus(a: Part, b: Part) -> Part:
    if a is None or b is None:
        return a if b is None else b
    return a + b


def _minus(a: Part, b: Part) -> Part:
    return a if b is None else _plus(a, -b)


def _add(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    a, b, c, d = _operands(self, other)
    if alpha != 1:
        real, imaginary = (alpha.real, alpha.imag) if isinstance(alpha, complex) else (alpha, None)
        c, d = (
            _minus(_times(c, real), _times(d, imaginary)),
            _plus(_times(c, imaginary), _times(d, real)),
        )
    return _joined(_plus(a, c), _plus(b, d))


def _sub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add(self, other, alpha=-alpha)


def _mul(self: Any, other: Any) -> Any:
    a, b, c, d = _operands(self, other)
    return _joined(_minus(_times(a, c), _times(b, d)), _plus(_times(a, d), _times(b, c)))


def _div(self: Any, other: Any) -> Any:
    """Divide both by the larger part of the divisor, whose square may have no number."""
    a, b, c, d = _operands(self, other)
    if d is None:
        return _joined(a / c, None if b is None else b / c)
    if not isinstance(c, Tensor):
        return _mul(self, 1 / complex(c, d))
    scale = aten.maximum.default(c.abs(), d.abs())
    c, d = c / scale, d / scale
    size = (c * c + d * d) * scale
    real = _plus(_times(a, c), _times(b, d))
    imaginary = _minus(_times(b, c), _times(a, d))
    return _joined(real / size, imaginary / size)


def _reciprocal(self: Tensor) -> Any:
    return _div(1.0, self)


def _conj(self: Tensor) -> Any:
    return aten._conj_physical.default(self)


def _abs_and_angle(self: Tensor) -> tuple[Tensor, Tensor]:
    real, imaginary = _parts(self, REAL[self.dtype])
    return aten.abs.default(self), aten.atan2.default(imaginary, real)


def _angle(self: Tensor) -> Any:
    if self.is_complex():
        return _abs_and_angle(self)[1]
    x = self if self.is_floating_point() else self.to(torch.float32)
    return torch.where(x < 0, math.pi, torch.where(aten.isnan.default(x), x, 0.0))


def _polar(size: Tensor, angle: Tensor) -> Any:
    return _joined(size * aten.cos.default(angle), size * aten.sin.default(angle))


def _vanishing(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a b``, but 0 where one is 0 and the other infinite or NaN.

    So an axis stays one where a number overflows: ``exp(99 + 0i)`` is ``inf + 0i`` (C11, G.6).
    """
    product = a * b
    is_zero = aten.logical_or.default(torch.eq(a, 0), torch.eq(b, 0))
    return torch.where(aten.logical_and.default(is_zero, product.isnan()), 0.0, product)


def _by_product(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Return ``a b c``, which is finite where ``b c`` alone would be too large."""
    return _vanishing(_vanishing(a, b), c)


def _exp(self: Tensor) -> Any:
    real, imaginary = _parts(self, REAL[self.dtype])
    root = aten.exp.default(real * 0.5)
    cosine, sine = aten.cos.default(imaginary), aten.sin.default(imaginary)
    return _joined(_by_product(cosine, root, root), _by_product(sine, root, root))


def _log(self: Tensor) -> Any:
    size, angle = _abs_and_angle(self)
    of_half = aten.log.default(aten.abs.default(self * 0.5)) + math.log(2)
    return _joined(torch.where(size.isinf(), of_half, aten.log.default(size)), angle)


def _sqrt(self: Tensor) -> Any:
    """Return the root whose real part is not negative, the sign of the other that of self's."""
    real, imaginary = _parts(self, REAL[self.dtype])
    size = aten.abs.default(self)
    half = torch.where(size.isinf(), aten.abs.default(self * 0.5), size * 0.5)
    larger = 2 * aten.sqrt.default(half / 4 + real.abs() / 8)
    smaller = torch.where(torch.eq(larger, 0), 0.0, imaginary.abs() / (2 * larger))
    smaller = torch.where(imaginary.isinf(), torch.inf, smaller)
    is_right = torch.ge(real, 0)
    return _joined(
        torch.where(is_right, larger, smaller),
        aten.copysign.Tensor(torch.where(is_right, smaller, larger), imaginary),
    )


def _full(size: Any, value: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype is None:
        dtype = torch.complex128 if torch.get_default_dtype() is torch.float64 else torch.complex64
    if not dtype.is_complex:
        return NotImplemented
    parts = (aten.full.default(size, x, dtype=REAL[dtype]) for x in (value.real, value.imag))
    return _joined(*parts)


def _full_like(self: Tensor, value: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return _full(list(self.shape), value, dtype=dtype or self.dtype)


def _pow(self: Tensor, exponent: Any) -> Any:
    if exponent == 0:
        return _full(list(self.shape), 1, dtype=self.dtype)
    if exponent == 1:
        return self.clone()
    if exponent in (2, 3):
        square = _mul(self, self)
        return square if exponent == 2 else _mul(square, self)
    if isinstance(exponent, complex):
        return NotImplemented
    size, angle = _abs_and_angle(self)
    of_half = aten.pow.Tensor_Scalar(aten.abs.default(self * 0.5), exponent / 2)
    root = aten.pow.Tensor_Scalar(size, exponent / 2)
    root = torch.where(size.isinf(), of_half * 2 ** min(exponent / 2, 1e3), root)
    cosine, sine = aten.cos.default(angle * exponent), aten.sin.default(angle * exponent)
    return _joined(_by_product(cosine, root, root), _by_product(sine, root, root))


def _by_cosh(a: Tensor, x: Tensor) -> Tensor:
    """Return ``a cosh(x)``, which is ``a cosh^2(x / 2) + a sinh^2(x / 2)``."""
    even, odd = aten.cosh.default(x * 0.5), aten.sinh.default(x * 0.5)
    return _by_product(a, even, even) + _by_product(a, odd, odd)


def _by_sinh(a: Tensor, x: Tensor) -> Tensor:
    """Return ``a sinh(x)``, which is ``2 a sinh(x / 2) cosh(x / 2)``."""
    return _by_product(a, 2 * aten.sinh.default(x * 0.5), aten.cosh.default(x * 0.5))


def _sin(self: Tensor) -> Any:
    real, imaginary = _parts(self, REAL[self.dtype])
    sine, cosine = aten.sin.default(real), aten.cos.default(real)
    return _joined(_by_cosh(sine, imaginary), _by_sinh(cosine, imaginary))


def _cos(self: Tensor) -> Any:
    real, imaginary = _parts(self, REAL[self.dtype])
    sine, cosine = aten.sin.default(real), aten.cos.default(real)
    return _joined(_by_cosh(cosine, imaginary), -_by_sinh(sine, imaginary))


def _sgn(self: Tensor) -> Any:
    if not self.is_complex():
        return aten.sign.default(self)
    size = aten.abs.default(self)
    return _div(self, torch.where(size == 0, 1.0, size))


def _eq(self: Any, other: Any) -> Any:
    a, b, c, d = _operands(self, other)
    if b is None or d is None:
        b, d = (0.0, d) if b is None else (b, 0.0)
    b, d = (b, d) if isinstance(b, Tensor) else (d, b)
    return aten.logical_and.default(torch.eq(a, c), torch.eq(b, d))


def _ne(self: Any, other: Any) -> Any:
    return aten.logical_not.default(_eq(self, other))


def _product(op: OpOverload) -> Callable[[Tensor, Tensor], Any]:
    def compute(self: Tensor, other: Tensor) -> Any:
        a, b, c, d = _operands(self, other)
        return _joined(op(a, c) - op(b, d), op(a, d) + op(b, c))

    return compute


def _linear(op: OpOverload) -> Callable[..., Any]:
    """Apply to pairs what adds along dimensions, counted from the first."""

    def compute(self: Tensor, dim: Any = None, *rest: Any, dtype: torch.dtype | None = None) -> Any:
        x = self if dtype is None else self.to(dtype)
        rank = x.dim()
        if isinstance(dim, int):
            place: Any = dim % max(rank, 1)
        else:
            place = [d % rank for d in dim] if dim else list(range(rank))
        pairs = torch.view_as_real(x)
        if rank == 0:
            return x.clone()
        return torch.view_as_complex(op(pairs, place, *rest).contiguous())

    return compute


def _sum(self: Tensor, *, dtype: torch.dtype | None = None) -> Any:
    return _linear(aten.sum.dim_IntList)(self, None, dtype=dtype)


def _negative(self: Tensor) -> Any:
    return torch.view_as_complex(-torch.view_as_real(self))


def _to_copy(self: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype is None or dtype == self.dtype or self.dtype == torch.bool:
        return NotImplemented
    if not dtype.is_complex:
        return _parts(self, dtype)[0] if self.is_complex() else NotImplemented
    return _joined(*_parts(self, REAL[dtype]))


def is_complex_call(args: Any, kwargs: Any) -> bool:
    """Tell whether an argument, or the dtype that is asked for, is complex."""

    def is_complex(value: Any) -> bool:
        value = value.meta.get("val") if isinstance(value, Node) else value
        if isinstance(value, Tensor):
            return value.is_complex()
        if isinstance(value, torch.dtype):
            return value.is_complex
        return isinstance(value, complex)

    return any(map(is_complex, pytree.tree_leaves((args, kwargs))))


def complex_by_parts(
    table: Mapping[OpOverload, Callable[..., Any]],
) -> dict[OpOverload, Callable[..., Any]]:
    """Return `table` with PARTS for complex calls; for real ones it holds as it is."""
    table = {**table}

    def either(op: OpOverload) -> Callable[..., Any]:
        of_reals = table.get(op, keep)

        def compute(*args: Any, **kwargs: Any) -> Any:
            chosen = PARTS[op] if is_complex_call(args, kwargs) else of_reals
            return chosen(*args, **kwargs)

        return compute

    def keep(*_: Any, **__: Any) -> Any:
        return NotImplemented

    return {**table, **{op: either(op) for op in PARTS}}


PARTS: dict[OpOverload, Callable[..., Any]] = {
    aten.add.Tensor: _add,
    aten.add.Scalar: _add,
    aten.sub.Tensor: _sub,
    aten.sub.Scalar: _sub,
    aten.mul.Tensor: _mul,
    aten.mul.Scalar: _mul,
    aten.div.Tensor: _div,
    aten.div.Scalar: _div,
    aten.reciprocal.default: _reciprocal,
    aten.neg.default: _negative,
    aten.exp.default: _exp,
    aten.log.default: _log,
    aten.sqrt.default: _sqrt,
    aten.pow.Tensor_Scalar: _pow,
    aten.sin.default: _sin,
    aten.cos.default: _cos,
    aten.full.default: _full,
    aten.full_like.default: _full_like,
    aten.eq.Tensor: _eq,
    aten.eq.Scalar: _eq,
    aten.ne.Tensor: _ne,
    aten.ne.Scalar: _ne,
    aten.mm.default: _product(aten.mm.default),
    aten.bmm.default: _product(aten.bmm.default),
    aten.sum.default: _sum,
    aten.sum.dim_IntList: _linear(aten.sum.dim_IntList),
    aten.mean.dim: _linear(aten.mean.dim),
    aten.cumsum.default: _linear(aten.cumsum.default),
    aten._to_copy.default: _to_copy,
}
"""Of operators that have kernels for real numbers."""

COMPLEX: dict[OpOverload, Callable[..., Any]] = {
    aten._conj.default: _conj,
    aten.angle.default: _angle,
    aten.complex.default: _joined,
    aten.polar.default: _polar,
    aten.sgn.default: _sgn,
}
