# SPDX-License-Identifier: BSD-3-Clause
"""What a device has, and whether a program only uses that."""

from etx_exir.target.check import (
    TargetWarning,
    UnsupportedError,
    check_target,
    load_target,
    missing,
)

__all__ = ["TargetWarning", "UnsupportedError", "check_target", "load_target", "missing"]
