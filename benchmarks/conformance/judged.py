# SPDX-License-Identifier: BSD-3-Clause
"""What a difference from eager may be: its rounding, or which of equal elements is named."""

from __future__ import annotations

from typing import Any

import torch

WIDER = dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64)


def are_ties(x: Any, found: list[Any], expected: list[Any]) -> bool:
    """Tell whether places differ, once each, and what `x` has there does not; others are equal."""
    differ = [
        (a, b)
        for a, b in zip(found, expected, strict=True)
        if not (isinstance(a, torch.Tensor) and torch.equal(a, b))
    ]
    return isinstance(x, torch.Tensor) and all(
        isinstance(a, torch.Tensor)
        and a.dtype == torch.int64
        and any(name_same(x, dim, a, b) for dim in range(x.dim()))
        for a, b in differ
    )


def name_same(x: torch.Tensor, dim: int, *places: torch.Tensor) -> bool:
    a, b = (i if i.dim() == x.dim() else i.unsqueeze(dim) for i in places)
    if any(n != m for d, (n, m) in enumerate(zip(a.shape, x.shape, strict=True)) if d != dim):
        return False
    once = a.sort(dim).values.diff(dim=dim).ne(0).all()
    return bool(once) and torch.equal(x.gather(dim, a), x.gather(dim, b))


def widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(WIDER.get(value.dtype, value.dtype))
    return WIDER.get(value, value) if isinstance(value, torch.dtype) else value


def is_rounded(found: list[Any], exact: list[Any]) -> bool:
    """Tell whether numbers are those of float64 to one step of their dtype, and others equal."""
    for a, b in zip(found, exact, strict=True):
        if not isinstance(a, torch.Tensor) or a.dtype not in WIDER:
            if not (torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b):
                return False
        else:
            info = torch.finfo(a.dtype)
            step = {"rtol": info.eps, "atol": info.smallest_normal * info.eps}
            if not torch.allclose(a.double(), b.to(a.dtype).double(), equal_nan=True, **step):
                return False
    return True


def is_near(found: list[Any], expected: list[Any], exact: list[Any]) -> bool:
    """Tell whether numbers are at most twice as far from float64 as eager's, and others equal."""
    for a, b, x in zip(found, expected, exact, strict=True):
        if not isinstance(a, torch.Tensor) or a.dtype not in WIDER:
            if not (torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b):
                return False
        elif a.numel() > 0:
            ours, theirs = ((y.double() - x).abs().max() for y in (a, b))
            if not ours <= 2 * theirs:
                return False
    return True
