# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that commands take: an option of one of these types is refused where it is read.

parser.add_argument("--seed", type=whole(0), ...)
"""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable

__all__ = ["real", "whole"]


def whole(least: int) -> Callable[[str], int]:
    """Return what reads whole numbers from `least`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise ArgumentTypeError(f"expected a whole number from {least}, got '{text}'")
        return number

    return read


def real(least: float = -math.inf) -> Callable[[str], float]:
    """Return what reads finite numbers from `least`, which NaN and infinities are not."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= least):
            bound = "" if least == -math.inf else f" from {least:g}"
            raise ArgumentTypeError(f"expected a number{bound}, got '{text}'")
        return number

    return read
