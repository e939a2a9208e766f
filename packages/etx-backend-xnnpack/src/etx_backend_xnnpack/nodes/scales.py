# SPDX-License-Identifier: BSD-3-Clause
"""Which scales XNNPACK's int8 arithmetic computes with: it checks none of them itself."""

from __future__ import annotations

from torch import Tensor

from etx_backend_xnnpack._generated.xnnpack import Operator
from etx_backend_xnnpack.builder import Affine
from etx_backend_xnnpack.quantized import Weight

LEAST_OF_SUM, LEAST_OF_PRODUCT, MOST = 2.0**-10, 2.0**-16, 2.0**8
OF_CONVERSION = 2.0**-8, 2.0**7
STEPS, TOLERATED = 255, 1 / 8
LARGEST = 127
LARGEST_BIAS = 2.0**30
"""Half of what int32 holds: the other is for the products."""


def fits(kind: Operator, at: tuple[Affine, Affine], result: Affine) -> bool:
    """Tell whether int8 multipliers hold the steps of both arguments in those of the result."""
    if kind is Operator.Multiply:
        return LEAST_OF_PRODUCT <= at[0].scale * at[1].scale / result.scale < MOST
    return all(LEAST_OF_SUM <= each.scale / result.scale < MOST for each in at)


def adds_products(
    weight: Weight | None, at: Affine | None, result: Affine | None, bias: Tensor | None
) -> bool:
    """Tell whether there are int8 operands whose products multipliers hold in steps of the result.

    XNNPACK refuses others when the file is loaded. Ranges of the data make none: a result that was
    nearly nothing in calibration can. Nor are there where int32 does not hold a bias in steps of
    the products, which are small where a row of the weight or an activation is nearly nothing.
    """
    if weight is None or at is None or result is None or weight.scales.dim() > 1:
        return False
    if bias is not None:
        steps = bias.double() / (weight.scales.double() * at.scale)
        if not bool((steps.abs() < LARGEST_BIAS).all()):
            return False
    return float(weight.scales.max()) * at.scale < MOST * result.scale


def holds(at: Affine, result: Affine) -> bool:
    """Tell whether int8 multipliers, of 1/256, hold a step of `at` in those of the result."""
    least, most = OF_CONVERSION
    return least <= at.scale / result.scale < most


def covers(result: Affine, at: Affine) -> bool:
    """Tell whether `result` has integers for all numbers that `at` has, except half a step."""
    lowest, highest = (
        (step - at.zero_point) * at.scale / result.scale + result.zero_point for step in (-128, 127)
    )
    return lowest >= -128.5 and highest <= 127.5


def converts(at: Affine, result: Affine) -> bool:
    """Tell whether such a multiplier rounds no integer otherwise than float32 does.

    Others of 1/256 are off by up to half a step, and those that are not, as 0.25, round halves up.
    """
    ratio = at.scale / result.scale
    return holds(at, result) and abs(ratio - round(ratio)) * STEPS <= TOLERATED


def number_scale(kind: Operator, number: float, result: Affine) -> Affine:
    """Return parameters for a number that is an argument: it is their largest integer.

    A number below what a sum's multipliers hold has as many steps as it then has.
    """
    scale = abs(number) / LARGEST
    if kind is not Operator.Multiply:
        scale = max(scale, 2 * LEAST_OF_SUM * result.scale)
    return Affine(scale, 0)
