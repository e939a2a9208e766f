# SPDX-License-Identifier: BSD-3-Clause
"""Functions that TOSA's profile FP has not, written in those that it has.

The polynomials of arcs are 4.4.46 and 4.4.49 of Abramowitz and Stegun, Handbook of Mathematical
Functions: off by 2e-8. That of the inverse error function is of M. Giles, Approximating the erfinv
function, 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from etx_backend_arm.nodes.functions import FLOATS, FORMULAS, Floats, Formula, formula
from etx_backend_arm.nodes.table import lowers
from etx_backend_arm.tosa import Op, fbs

aten = torch.ops.aten
ARC_COSINE = (
    -0.0012624911,
    0.0066700901,
    -0.0170881256,
    0.0308918810,
    -0.0501743046,
    0.0889789874,
    -0.2145988016,
    1.5707963050,
)
"""Of x, over the root of 1 - x."""
ARC_TANGENT = (
    0.0028662257,
    -0.0161657367,
    0.0429096138,
    -0.0752896400,
    0.1065626393,
    -0.1420889944,
    0.1999355085,
    -0.3333314528,
    1.0,
)
"""Of the square of x, over x."""
ERROR_INSIDE = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
"""Of w - 2.5 where w, the negative logarithm of 1 - x x, is below 5."""
ERROR_OUTSIDE = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)
"""Of the root of w, less 3, elsewhere."""


def _polynomial(f: Floats, x: str, factors: Sequence[float]) -> str:
    """Return the polynomial whose factors are given from the highest power down."""
    made = f.add(f.mul(x, factors[0]), factors[1])
    for factor in factors[2:]:
        made = f.add(f.mul(made, x), factor)
    return made


def _abs(f: Floats, x: str) -> str:
    return f.one(Op.ABS, fbs.AbsAttribute(), x)


def _log(f: Floats, x: str) -> str:
    return f.one(Op.LOG, fbs.LogAttribute(), x)


def _exp(f: Floats, x: str) -> str:
    return f.one(Op.EXP, fbs.ExpAttribute(), x)


def _root(f: Floats, x: str) -> str:
    """POW is unpredictable of what is below zero or infinite."""
    return f.reciprocal(f.one(Op.RSQRT, fbs.RsqrtAttribute(), x))


def _with_sign(f: Floats, x: str, size: str) -> str:
    """Return ``size``, or its negative where x is below zero."""
    return f.where_positive(x, f.neg(size), size)


def _acos(f: Floats, x: str) -> str:
    size = _abs(f, x)
    rest = _root(f, f.add(f.neg(size), 1.0))
    made = f.mul(rest, _polynomial(f, size, ARC_COSINE))
    return f.where_positive(x, f.add(f.neg(made), math.pi), made)


def _asin(f: Floats, x: str) -> str:
    return f.add(f.neg(_acos(f, x)), math.pi / 2)


def _atan(f: Floats, x: str) -> str:
    size = _abs(f, x)
    beyond = f.add(size, -1.0)
    small = f.where_positive(beyond, size, f.reciprocal(size))
    bent = f.mul(small, _polynomial(f, f.mul(small, small), ARC_TANGENT))
    made = f.where_positive(beyond, bent, f.add(f.neg(bent), math.pi / 2))
    return _with_sign(f, x, made)


def _log_of_sum(f: Floats, x: str, root: str) -> str:
    """Return log(x + root), or log 2 x where the root is x, whose double may be infinite."""
    large = f.add(_log(f, x), math.log(2.0))
    return f.where_positive(f.add(x, -1e4), _log(f, f.add(x, root)), large)


def _asinh(f: Floats, x: str) -> str:
    size = _abs(f, x)
    root = _root(f, f.add(f.mul(size, size), 1.0))
    return _with_sign(f, x, _log_of_sum(f, size, root))


def _acosh(f: Floats, x: str) -> str:
    root = f.mul(_root(f, f.add(x, -1.0)), _root(f, f.add(x, 1.0)))
    return _log_of_sum(f, x, root)


def _atanh(f: Floats, x: str) -> str:
    return f.mul(f.add(_log(f, f.add(x, 1.0)), f.neg(_log(f, f.add(f.neg(x), 1.0)))), 0.5)


def _half_tangent(f: Floats, x: str) -> str:
    return f.one(Op.TANH, fbs.TanhAttribute(), f.mul(x, 0.5))


def _expm1(f: Floats, x: str) -> str:
    return f.mul(_half_tangent(f, x), f.add(_exp(f, x), 1.0))


def _cosh(f: Floats, x: str) -> str:
    """Of half the argument, whose exponential is finite wherever the result is."""
    half = _exp(f, f.mul(x, 0.5))
    other = f.reciprocal(half)
    return f.add(f.mul(f.mul(half, 0.5), half), f.mul(f.mul(other, 0.5), other))


def _sinh(f: Floats, x: str) -> str:
    return f.mul(_half_tangent(f, x), f.add(_cosh(f, x), 1.0))


def _sign(f: Floats, x: str) -> str:
    below = f.where_positive(f.neg(x), f.number(0.0, x), f.number(-1.0, x))
    return f.where_positive(x, below, f.number(1.0, x))


def _erfinv(f: Floats, x: str) -> str:
    w = f.neg(_log(f, f.mul(f.add(f.neg(x), 1.0), f.add(x, 1.0))))
    inside = _polynomial(f, f.add(w, -2.5), ERROR_INSIDE)
    outside = _polynomial(f, f.add(_root(f, w), -3.0), ERROR_OUTSIDE)
    made = f.mul(x, f.where_positive(f.add(w, -5.0), inside, outside))
    return f.where_positive(f.add(f.neg(_abs(f, x)), 1.0), f.mul(x, _abs(f, w)), made)


def _logit(f: Floats, x: str) -> str:
    eps = f.call.arguments[1]
    if eps is not None:
        x = f.clamp(x, float(eps), 1 - float(eps))
    return f.add(_log(f, x), f.neg(_log(f, f.add(f.neg(x), 1.0))))


def _round(f: Floats, x: str) -> str:
    """To even: 2 to the 23rd, added and taken away, leaves no room for fractions."""
    size, most = _abs(f, x), 2.0**23
    near = f.add(f.add(size, most), -most)
    return _with_sign(f, x, f.where_positive(f.add(size, -most), near, size))


CURVES: dict[object, Formula] = {
    aten.acos.default: _acos,
    aten.acosh.default: _acosh,
    aten.asin.default: _asin,
    aten.asinh.default: _asinh,
    aten.atan.default: _atan,
    aten.atanh.default: _atanh,
    aten.cosh.default: _cosh,
    aten.erfinv.default: _erfinv,
    aten.expm1.default: _expm1,
    aten.log1p.default: lambda f, x: _log(f, f.add(x, 1.0)),
    aten.logit.default: _logit,
    aten.round.default: _round,
    aten.sign.default: _sign,
    aten.sinh.default: _sinh,
    aten.sqrt.default: _root,
}


FORMULAS |= CURVES
for target in CURVES:
    lowers(target, when=FLOATS)(formula)
