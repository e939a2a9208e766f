# SPDX-License-Identifier: BSD-3-Clause
"""What can be lowered: `TABLE`, by operator, and the reason why a node cannot."""

from etx_backend_xnnpack.nodes import (  # noqa: F401  each fills the table
    attention,
    choice,
    conv,
    elementwise,
    linear,
    matmul,
    means,
    norms,
    pool,
    shape,
)
from etx_backend_xnnpack.nodes.table import TABLE, Lowering, Work, why_not

__all__ = ["TABLE", "Lowering", "Work", "why_not"]
