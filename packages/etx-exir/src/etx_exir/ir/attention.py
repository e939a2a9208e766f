# SPDX-License-Identifier: BSD-3-Clause
"""``etx::attention``: a softmax between two batched products, whose scores are never all there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["ATTENTION"]

_LIBRARY: Any = torch.library.Library("etx", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, SymInt[] shape, float scale,"
    " bool is_causal) -> Tensor"
)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    shape: Sequence[Any],
    scale: float,
    is_causal: bool,
) -> Tensor:
    """Return ``softmax(scale * query key^T + mask) value``.

    Query (N, M, E), key (N, L, E), value (N, L, F) and the result (N, M, F) are float32, or all
    float16 or bfloat16, which are computed in float32. The mask broadcasts to `shape`, sizes under
    which the scores (N, M, L) are seen, () for these, and is float32, which is added, or bool,
    which is false where a key takes no part. `is_causal`: row i of the last but one dimension of
    `shape` sees the first i + 1 keys. A row that sees none is NaN; on a device, what is in a key or
    value that a whole row does not see has no effect on it.
    """
    if query.dtype is not torch.float32:
        query32, key32, value32 = query.float(), key.float(), value.float()
        mixed = _attention(query32, key32, value32, mask, shape, scale, is_causal)
        return mixed.to(query.dtype)
    products = (query * scale) @ key.transpose(1, 2)
    scores = products.reshape(tuple(shape)) if shape else products
    if is_causal:
        hidden = scores.new_ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not()
        scores = scores.masked_fill(hidden, -torch.inf)
    if mask is not None and mask.dtype is torch.bool:
        scores = scores.masked_fill(mask.logical_not(), -torch.inf)
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1).reshape(products.shape) @ value


def _shape_of(query: Tensor, key: Tensor, value: Tensor, *_: Any) -> Tensor:
    return query.new_empty((query.shape[0], query.shape[1], value.shape[2]))


_LIBRARY.impl("attention", _attention, "CompositeExplicitAutograd")
_LIBRARY.impl("attention", _shape_of, "Meta")
ATTENTION: Any = torch.ops.etx.attention.default
