# SPDX-License-Identifier: BSD-3-Clause
"""Arrays made of Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def from_number(value: float | bool, dtype: str) -> np.ndarray[Any, Any] | None:
    """Return a 0-d array of `dtype`, or None when `value` is of another kind of number."""
    try:
        target = np.dtype(dtype)
    except TypeError:
        return None
    kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
    allowed = {"b": "biufc", "i": "iufc", "f": "fc"}[kind]
    return np.array(value, target) if target.kind in allowed else None
