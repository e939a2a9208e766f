# SPDX-License-Identifier: BSD-3-Clause
"""Operators that only bound their argument."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from etx_backend_xnnpack.builder import Range
from etx_backend_xnnpack.quantized import argument

aten = torch.ops.aten

BOUNDS: dict[Any, tuple[Any, Any]] = {
    aten.relu.default: (0.0, math.inf),
    aten.relu6.default: (0.0, 6.0),
    aten.hardtanh.default: ("min_val", "max_val"),
    aten.clamp.default: ("min", "max"),
    aten.clamp_min.default: ("min", math.inf),
    aten.clamp_max.default: (-math.inf, "max"),
}
"""Lower and upper bound, or the arguments that hold them."""


def range_of(node: Node) -> Range | None:
    """Return what a node clamps to in its dtype, None for other operators and an empty range."""
    bounds = BOUNDS.get(node.target)
    if bounds is None:
        return None
    low, high = (argument(node, each) if isinstance(each, str) else each for each in bounds)
    dtype = node.meta["val"].dtype
    low = -math.inf if low is None else _rounded(low, dtype)
    high = math.inf if high is None else _rounded(high, dtype)
    return Range(low, high) if low < high else None


def _rounded(number: float, dtype: torch.dtype) -> float:
    return float(torch.tensor(number, dtype=torch.float64).to(dtype))
