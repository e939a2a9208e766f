# SPDX-License-Identifier: BSD-3-Clause
"""Attention in float64 torch, and its name for tests where the compiler is not installed."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import Library

SCHEMA = (
    "Tensor query, Tensor key, Tensor value, Tensor? mask, int[] shape, float scale, bool is_causal"
)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    shape: list[int],
    scale: float,
    is_causal: bool,
) -> Tensor:
    """Return softmax(scale * query key^T + mask) value in the dtype of value (N, M, F)."""
    products = scale * query.double() @ key.double().transpose(1, 2)
    scores = products.reshape(shape or products.shape)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    if mask is not None and mask.dtype is torch.bool:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask.double()
    return (scores.softmax(-1).reshape(products.shape) @ value.double()).to(value.dtype)


def define_operator() -> Library:
    """Register the operator, and the name for its kernel, as long as the library lives."""
    library = Library("etx", "FRAGMENT")
    if not hasattr(torch.ops.etx, "attention"):
        library.define(f"attention({SCHEMA}) -> Tensor")
        library.impl("attention", attention, "CompositeExplicitAutograd")
    library.define(f"attention.out({SCHEMA}, *, Tensor(a!) out) -> Tensor(a!)")
    return library
