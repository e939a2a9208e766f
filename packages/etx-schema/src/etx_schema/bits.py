# SPDX-License-Identifier: BSD-3-Clause
"""Sets of small numbers as the bits of an integer."""

from collections.abc import Iterator


def set_bits(bits: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, the lowest first."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
