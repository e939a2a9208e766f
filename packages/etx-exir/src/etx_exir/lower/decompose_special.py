# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions of special functions, computed in float64.

Series are those of Abramowitz and Stegun, "Handbook of Mathematical Functions"; polynomials
interpolate at Chebyshev's points values that were computed with 40 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from etx_exir.ir.own_ops import POLYNOMIAL

aten = torch.ops.aten

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""B2, B4, ... B16 (A&S, table 23.2)."""
STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))
DIGAMMA = tuple(b / (2 * k) for k, b in enumerate(BERNOULLI, 1))
LARGEST = torch.finfo(torch.float64).max
LEAST_POLE = 1e300
"""All numbers as large are whole, and lgamma of this is finite."""
FAR = (math.sqrt(8.0), math.sqrt(37.0))
TAIL = (math.sqrt(37.0), math.sqrt(746.0))
ERFINV_NEAR = (
    1.8587791124269735,
    0.9134187413507605,
    -0.11553695922940534,
    -0.013054209120128842,
    0.030432714016693074,
    -0.01588750457010772,
    0.0019928778434596633,
    0.0029039612188692583,
    -0.0021912918135418773,
    0.0004849797180143967,
    0.0003051307579241805,
    -0.0003009965419209512,
    8.794024806503562e-05,
    3.1262900262222185e-05,
    -4.1276000707478254e-05,
    1.4806543076693386e-05,
    2.8333286958656487e-06,
    -5.660451711095853e-06,
    2.465476110135882e-06,
    1.9750887436602887e-07,
    -8.453304379965982e-07,
    3.885962377168951e-07,
    6.293154931111899e-08,
    -1.2292289534345906e-07,
    2.389126540665946e-08,
    1.383484596007461e-08,
    -5.02970832484079e-09,
)
"""Of erfinv(y) / y in w / 4 - 1 for w = -log(1 - y^2) up to 8, by interpolation."""

ERFINV_FAR = (
    4.2998949349021585,
    1.6437666206109163,
    0.0010234439727616444,
    -0.0019703594521406696,
    0.0011033199380599725,
    -0.0005034171190751939,
    0.00022851312273006348,
    -0.00012845063806445588,
    0.00010075201932156533,
    -9.210437286950845e-05,
    7.908982914449379e-05,
    -5.677407120319744e-05,
    3.068506283940882e-05,
    -9.031243225844952e-06,
    -3.2638468041671738e-06,
    6.577041774242026e-06,
    -4.811625927759651e-06,
    1.991433408595169e-06,
    -1.0255400669435774e-07,
    -5.990710309790705e-07,
    4.9095621416547e-07,
    -1.3567209118786448e-07,
    -4.5154673791402604e-08,
    3.992780686825624e-08,
    -7.66650021387459e-09,
)
"""The same in sqrt(w), from sqrt(8) to sqrt(37), as -1 to 1."""

NDTRI_TAIL = (
    16.617093486347166,
    10.647516162659445,
    -0.014589989003863293,
    0.006737201710326753,
    -0.0030758888701360437,
    0.001343098048661874,
    -0.0005305303767286961,
    0.00016199666517808156,
    -6.069100274654108e-06,
    -5.124148796530343e-05,
    6.325328402902586e-05,
    -5.283979197553715e-05,
    4.363596578350117e-05,
    -5.2323502064767114e-05,
    3.6305013064543885e-05,
    2.5398878232728633e-05,
    -1.447937393105691e-05,
    -8.482494064575316e-05,
    5.324772777253499e-05,
    8.632894120860247e-05,
    -5.35875942677639e-05,
    -7.167205065282873e-05,
    4.470462396403881e-05,
    3.1870690128676894e-05,
    -1.9857510001494103e-05,
    -7.555324503237694e-06,
    4.725692204045491e-06,
)
"""The same from sqrt(37) to sqrt(746), where w is of the least numbers."""

ERFCX = (
    1.095995661000491,
    -0.976548729080882,
    0.7732087022652371,
    -0.5408538313132345,
    0.3308515878780107,
    -0.1740109372399329,
    0.07638151490940508,
    -0.026370053340693672,
    0.0061120556534863925,
    -0.0002809588591883079,
    -0.0004550526593817673,
    0.00017681276807153315,
    -3.635329756508496e-06,
    -1.8860655851650423e-05,
    4.695056181536189e-06,
    1.423544943950122e-06,
    -8.478822846448528e-07,
    -7.440264267692018e-08,
    1.269526620028216e-07,
    -2.753680956835059e-10,
    -1.8208760359519016e-08,
    7.051218877756988e-10,
    2.3248139490706373e-09,
    -7.64653997246155e-11,
    -1.8622648765726154e-10,
)
"""Of erfcx(x) (x + 4) in 1 - 8 / (x + 4) for x >= 0, by interpolation."""

I0E = (
    0.5737271274273993,
    -0.30765090439203174,
    0.2504878895870112,
    -0.23075664079950667,
    0.22966973185042996,
    -0.2448402045632751,
    0.27554051987788925,
    -0.309123492124536,
    0.3067642499720746,
    -0.21569312606244226,
    0.03421291147943648,
    0.12551336737191335,
    -0.11518915667697066,
    -0.038950644137520044,
    0.1081663502433973,
    0.009093600053725356,
    -0.0931074576682817,
    -0.010259542910847736,
    0.08198098397729382,
    0.0255254876435362,
    -0.07094874527682588,
    -0.043641949253289354,
    0.05621582624211373,
    0.05437448287772649,
    -0.038261388389686096,
    -0.05133227875422656,
    0.021171474063925392,
    0.036595064965744044,
    -0.009002935797653253,
    -0.019124596488319247,
    0.0027347043737586205,
    0.006910312593179666,
    -0.0005250800912555133,
    -0.001540950185930244,
    4.7697379754982134e-05,
    0.0001595919937237905,
)
"""Of exp(-x) I0(x) (x + 8)^(1/2) in 1 - 16 / (x + 8) for x >= 0, by interpolation."""

I1E = (
    1.073139946341584,
    -1.4938209296424978,
    1.7096789860506347,
    -1.7905901655022214,
    1.7519243807690044,
    -1.584407412614537,
    1.2661457049966804,
    -0.7934652688715621,
    0.24183409968429537,
    0.19427011944598302,
    -0.29706315092246066,
    0.06723878692236851,
    0.17220908485373862,
    -0.11204340586611941,
    -0.10511416933382649,
    0.09990507939854282,
    0.08515377319803305,
    -0.07466467767356667,
    -0.08654323970028707,
    0.043479726159350036,
    0.09110588122997984,
    -0.009842098697684503,
    -0.08675360293958079,
    -0.018059040167939605,
    0.06934459738362438,
    0.03126431283765998,
    -0.04417422701596787,
    -0.028242395161247744,
    0.02128958833678947,
    0.016790563079667108,
    -0.0072383356727050725,
    -0.00658052561158182,
    0.001539658853366433,
    0.0015515481473694008,
    -0.0001535864198080964,
    -0.0001673254736500788,
)
"""Of exp(-x) I1(x) / x (x + 8)^(3/2) in the same."""


def _in_float64(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    @wraps(function)
    def compute(self: Tensor) -> Any:
        given = self if self.is_floating_point() else self.to(torch.float32)
        return function(given.to(torch.float64)).to(given.dtype)

    return compute


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Any:
    return POLYNOMIAL(x, list(coefficients))


def _from_eight(x: Tensor) -> tuple[Any, Any, list[Any]]:
    """Return max(x, x + 8 where x < 8), where that is, and the x(x + 7), (x + 1)(x + 6), ..."""
    low = aten.lt.Scalar(x, 8.0)
    product = aten.mul.Tensor(x, aten.add.Scalar(x, 7.0))
    pairs = [product, *(aten.add.Scalar(product, k) for k in (6.0, 10.0, 12.0))]
    return aten.where.self(low, aten.add.Scalar(x, 8.0), x), low, pairs


def _beside_integer(x: Tensor) -> Any:
    """Return x - round(x), which is exact, as sin(pi x) and tan(pi x) want it."""
    return aten.sub.Tensor(x, aten.round.default(x))


@_in_float64
def _lgamma(x: Tensor) -> Any:
    """Stirling's series (A&S 6.1.41) from 8, the recurrence (6.1.16) below and the reflection
    (6.1.17) up to 0; near the zeros below 0 the error is absolute, as eager's."""
    x = aten.clamp.default(x, -LEAST_POLE)
    mirrored = aten.le.Scalar(x, 0.0)
    y = aten.where.self(mirrored, aten.rsub.Scalar(x, 1.0), x)
    whole, low, pairs = _from_eight(y)
    product = aten.mul.Tensor(aten.mul.Tensor(pairs[0], pairs[1]), pairs[2])
    product = aten.mul.Tensor(product, pairs[3])
    product = aten.where.ScalarOther(low, product, 1.0)
    part = aten.reciprocal.default(whole)
    series = aten.mul.Tensor(_polynomial(aten.mul.Tensor(part, part), STIRLING), part)
    large = aten.sub.Scalar(aten.log.default(whole), 1.0)
    large = aten.mul.Tensor(large, aten.sub.Scalar(whole, 0.5))
    rest = aten.add.Scalar(series, 0.5 * math.log(2 * math.pi) - 0.5)
    above = aten.sub.Tensor(aten.add.Tensor(large, rest), aten.log.default(product))
    zeros = aten.mul.Tensor(aten.sub.Scalar(y, 1.0), aten.sub.Scalar(y, 2.0))
    above = aten.masked_fill.Scalar(above, aten.eq.Scalar(zeros, 0.0), 0.0)
    beside = _beside_integer(x)
    sine = aten.abs.default(aten.sin.default(aten.mul.Scalar(beside, math.pi)))
    below = aten.rsub.Scalar(aten.log.default(sine), math.log(math.pi))
    return aten.where.self(mirrored, aten.sub.Tensor(below, above), above)


@_in_float64
def _digamma(x: Tensor) -> Any:
    """A&S 6.3.18 from 8, the recurrence (6.3.6) below and the reflection (6.3.7) up to 0;
    -inf at 0, inf at -0, NaN at other poles, as eager has it."""
    mirrored = aten.le.Scalar(x, 0.0)
    y = aten.where.self(mirrored, aten.rsub.Scalar(x, 1.0), x)
    whole, low, pairs = _from_eight(y)
    first, *others = (aten.reciprocal.default(pair) for pair in pairs)
    for other in others:
        first = aten.add.Tensor(first, other)
    steps = aten.mul.Tensor(first, aten.add.Scalar(aten.mul.Scalar(y, 2.0), 7.0))
    steps = aten.where.ScalarOther(low, steps, 0.0)
    part = aten.reciprocal.default(whole)
    square = aten.mul.Tensor(part, part)
    series = aten.mul.Tensor(_polynomial(square, DIGAMMA), square)
    series = aten.add.Tensor(series, aten.mul.Scalar(part, 0.5))
    above = aten.sub.Tensor(aten.sub.Tensor(aten.log.default(whole), series), steps)
    beside = _beside_integer(x)
    angle = aten.mul.Scalar(beside, math.pi)
    cotangent = aten.div.Tensor(aten.cos.default(angle), aten.sin.default(angle))
    below = aten.sub.Tensor(above, aten.mul.Scalar(cotangent, math.pi))
    below = aten.masked_fill.Scalar(below, aten.eq.Scalar(beside, 0.0), math.nan)
    result = aten.where.self(mirrored, below, above)
    at_zero = aten.neg.default(aten.reciprocal.default(x))
    return aten.where.self(aten.eq.Scalar(x, 0.0), at_zero, result)


@_in_float64
def _erfinv(y: Tensor) -> Any:
    """y times a polynomial of w = -log(1 - y^2) where that is small, else of sqrt(w), as Giles
    has it ("Approximating the erfinv function", GPU Computing Gems, 2011)."""
    sides = aten.mul.Tensor(aten.rsub.Scalar(y, 1.0), aten.add.Scalar(y, 1.0))
    return _times_quotient(y, aten.neg.default(aten.log.default(sides)), tail=False)


def _times_quotient(y: Tensor, w: Tensor, tail: bool) -> Any:
    """Return erfinv(y) by y and w = -log(1 - y^2), which may be of a y that rounds to 1."""
    near = _polynomial(aten.sub.Scalar(aten.mul.Scalar(w, 0.25), 1.0), ERFINV_NEAR)
    root = aten.sqrt.default(aten.abs.default(w))
    far = _between(root, FAR, ERFINV_FAR)
    if tail:
        least = _between(root, TAIL, NDTRI_TAIL)
        far = aten.where.self(aten.lt.Scalar(root, TAIL[0]), far, least)
    result = aten.mul.Tensor(aten.where.self(aten.lt.Scalar(w, 8.0), near, far), y)
    return aten.where.self(aten.isinf.default(w), aten.mul.Scalar(y, math.inf), result)


def _between(x: Tensor, ends: tuple[float, float], coefficients: Sequence[float]) -> Any:
    """Return a polynomial in x, from one end to the other as -1 to 1."""
    span, middle = ends[1] - ends[0], ends[1] + ends[0]
    place = aten.mul.Scalar(x, 2.0 / span)
    return _polynomial(aten.sub.Scalar(place, middle / span), coefficients)


@_in_float64
def _ndtri(p: Tensor) -> Any:
    """Return sqrt(2) erfinv(2p - 1), of which 1 - y^2 is 4p(1 - p) however small p is."""
    y = aten.sub.Scalar(aten.mul.Scalar(p, 2.0), 1.0)
    sides = aten.mul.Tensor(aten.mul.Scalar(p, 4.0), aten.rsub.Scalar(p, 1.0))
    root = _times_quotient(y, aten.neg.default(aten.log.default(sides)), tail=True)
    return aten.mul.Scalar(root, math.sqrt(2.0))


@_in_float64
def _erfcx(x: Tensor) -> Any:
    part = aten.reciprocal.default(aten.add.Scalar(aten.abs.default(x), 4.0))
    place = aten.rsub.Scalar(aten.mul.Scalar(part, 8.0), 1.0)
    above = aten.mul.Tensor(_polynomial(place, ERFCX), part)
    whole = aten.mul.Scalar(aten.exp.default(aten.mul.Tensor(x, x)), 2.0)
    return aten.where.self(aten.lt.Scalar(x, 0.0), aten.sub.Tensor(whole, above), above)


def _scaled_bessel(x: Tensor, order: int) -> tuple[Any, Any]:
    """Return exp(-|x|) I(x) and |x|, with no more than a polynomial and a root for all x."""
    size = aten.abs.default(x)
    part = aten.reciprocal.default(aten.add.Scalar(size, 8.0))
    place = aten.rsub.Scalar(aten.mul.Scalar(part, 16.0), 1.0)
    scaled = aten.mul.Tensor(_polynomial(place, (I0E, I1E)[order]), aten.sqrt.default(part))
    if order == 1:
        finite = aten.clamp.default(x, -LARGEST, LARGEST)
        scaled = aten.mul.Tensor(aten.mul.Tensor(finite, part), scaled)
    return scaled, size


def _bessel(order: int, is_scaled: bool) -> Callable[[Tensor], Any]:
    @_in_float64
    def compute(x: Tensor) -> Any:
        scaled, size = _scaled_bessel(x, order)
        return scaled if is_scaled else aten.mul.Tensor(aten.exp.default(size), scaled)

    return compute


@_in_float64
def _spherical_bessel(x: Tensor) -> Any:
    """Return sin(x) / x, which is 1 at 0 and 0 far away."""
    result = aten.div.Tensor(aten.sin.default(x), x)
    result = aten.masked_fill.Scalar(result, aten.isinf.default(x), 0.0)
    return aten.masked_fill.Scalar(result, aten.eq.Scalar(x, 0.0), 1.0)


SPECIAL: dict[OpOverload, Callable[..., Any]] = {
    aten.lgamma.default: _lgamma,
    aten.digamma.default: _digamma,
    aten.erfinv.default: _erfinv,
    aten.special_ndtri.default: _ndtri,
    aten.special_erfcx.default: _erfcx,
    aten.i0.default: _bessel(0, is_scaled=False),
    aten.special_i0e.default: _bessel(0, is_scaled=True),
    aten.special_i1.default: _bessel(1, is_scaled=False),
    aten.special_modified_bessel_i0.default: _bessel(0, is_scaled=False),
    aten.special_modified_bessel_i1.default: _bessel(1, is_scaled=False),
    aten.special_spherical_bessel_j0.default: _spherical_bessel,
    aten.special_i1e.default: _bessel(1, is_scaled=True),
}
