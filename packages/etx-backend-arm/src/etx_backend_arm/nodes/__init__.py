# SPDX-License-Identifier: BSD-3-Clause
"""The lowerings to TOSA: importing this fills the table."""

from etx_backend_arm.nodes import arithmetic, clamp, conv, linear, pool, shape
from etx_backend_arm.nodes.table import TABLE, Lowering, Profile, arguments, lowers, why_not

__all__ = [
    "TABLE",
    "Lowering",
    "Profile",
    "arguments",
    "arithmetic",
    "clamp",
    "conv",
    "linear",
    "lowers",
    "pool",
    "shape",
    "why_not",
]
