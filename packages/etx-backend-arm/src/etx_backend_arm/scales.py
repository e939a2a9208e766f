# SPDX-License-Identifier: BSD-3-Clause
"""Real scales as an int32 multiplier and a shift, as RESCALE takes them."""

from __future__ import annotations

import math

__all__ = ["multiplier_and_shift"]


def multiplier_and_shift(scale: float, bits: int = 31) -> tuple[int, int]:
    """Return m and s such that m / 2**s is nearest to ``scale``: m below 2**bits, s from 2 to 62.

    Raises ValueError for a scale that is not positive or needs another shift.
    """
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"a scale of {scale}; expected a positive number")
    fraction, exponent = math.frexp(scale)
    multiplier = round(fraction * 2**bits)
    if multiplier == 2**bits:
        multiplier, exponent = 2 ** (bits - 1), exponent + 1
    shift = bits - exponent
    if shift > 62:
        multiplier, shift = multiplier >> min(shift - 62, bits), 62
    if shift < 2:
        raise ValueError(f"a scale of {scale}; RESCALE takes less than 2**{bits - 2}")
    return multiplier, shift
