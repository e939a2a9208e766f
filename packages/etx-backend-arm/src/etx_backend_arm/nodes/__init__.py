# SPDX-License-Identifier: BSD-3-Clause
"""The lowerings to TOSA: importing this fills the table."""

from etx_backend_arm.nodes import clamp, conv
from etx_backend_arm.nodes.table import TABLE, Lowering, arguments, lowers, why_not

__all__ = ["TABLE", "Lowering", "arguments", "clamp", "conv", "lowers", "why_not"]
