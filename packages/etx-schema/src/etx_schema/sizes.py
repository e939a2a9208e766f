# SPDX-License-Identifier: BSD-3-Clause
"""Sizes of memories, as people write them."""

from __future__ import annotations

import re

SIZE = re.compile(r"(0x[0-9a-f]+|\d+)([KM]?)", re.IGNORECASE)
FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def parse_size(given: object) -> int:
    """Return the bytes of ``96K``, ``2M``, ``0x20000000`` or a number.

    Errors: ValueError.
    """
    match = SIZE.fullmatch(str(given))
    if match is None or isinstance(given, bool):
        raise ValueError(f"size={given!r}: expected bytes, such as 98304, '96K', '2M' or '0x18000'")
    return int(match[1], 0) * FACTORS[match[2].upper()]
