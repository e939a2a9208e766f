# SPDX-License-Identifier: BSD-3-Clause
"""Decompositions that compute float16 and bfloat16 in float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

__all__ = ["NARROW", "in_float32"]

NARROW = (torch.float16, torch.bfloat16)


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compute what is given in float16 or bfloat16 in float32, as eager does, and round once."""

    def widened(value: Any) -> Any:
        narrow = isinstance(value, Tensor) and value.dtype in NARROW
        return value.to(torch.float32) if narrow else value

    @wraps(function)
    def compute(*args: Any, **kwargs: Any) -> Any:
        dtype = next(a.dtype for a in args if isinstance(a, Tensor))
        if dtype not in NARROW:
            return function(*args, **kwargs)
        return function(*map(widened, args), **kwargs).to(dtype)

    return compute
