# SPDX-License-Identifier: BSD-3-Clause
"""What changed from one file to another."""

from etx_devtools.diff.changes import Change, Difference, MethodDifference, diff
from etx_devtools.diff.weights import WeightChange

__all__ = ["Change", "Difference", "MethodDifference", "WeightChange", "diff"]
