# SPDX-License-Identifier: BSD-3-Clause
"""Operators of namespace ``etx`` that stand for several of torch's, and how one is defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

__all__ = ["ATTENTION", "BMM_NT", "MAX_POOL2D", "POINTWISE", "POLYNOMIAL", "define"]

_LIBRARY: Any = torch.library.Library("etx", "FRAGMENT")  # type: ignore[no-untyped-call]


def define(
    schema: str,
    compute: Callable[..., Any],
    shape: Callable[..., Any],
    tags: Sequence[torch.Tag] = (),
) -> Any:
    """Return the operator ``etx::`` of `schema`, computed in eager mode by `compute`.

    `shape` returns results of the shapes and dtypes that `compute` returns.
    """
    name = schema.partition("(")[0]
    _LIBRARY.define(schema, tags=tuple(tags))
    _LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
    _LIBRARY.impl(name, shape, "Meta")
    return getattr(torch.ops.etx, name).default


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


ATTENTION = define(
    "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, SymInt[] shape, float scale,"
    " bool is_causal) -> Tensor",
    _attention,
    _shape_of,
)


def _max_pool2d(self: Tensor, *window: Any) -> Tensor:
    """Return the largest element of each window of (C, H, W) or (N, C, H, W), NaN where one is.

    Arguments and shapes are those of torch's operator, without the indices.
    """
    largest: Tensor = torch.ops.aten.max_pool2d_with_indices.default(self, *window)[0]
    return largest


MAX_POOL2D = define(
    "max_pool2d(Tensor self, SymInt[2] kernel_size, SymInt[2] stride=[], SymInt[2] padding=0,"
    " SymInt[2] dilation=1, bool ceil_mode=False) -> Tensor",
    _max_pool2d,
    _max_pool2d,
)


def _bmm_nt(self: Tensor, mat2: Tensor) -> Tensor:
    """Return ``self mat2^T``: (N, M, L) of (N, M, K) and (N, L, K), all of one real dtype."""
    return torch.bmm(self, mat2.transpose(1, 2))


BMM_NT = define("bmm_nt(Tensor self, Tensor mat2) -> Tensor", _bmm_nt, _bmm_nt)


def _polynomial(self: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Return c[0] + c[1] x + c[2] x^2 + ... of each element, of one term at least, in float64."""
    if len(coefficients) == 1:
        return torch.full_like(self, coefficients[0])
    total = self * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total = (total + coefficient) * self
    return total + coefficients[0]


POLYNOMIAL = define(
    "polynomial(Tensor self, float[] coefficients) -> Tensor",
    _polynomial,
    lambda self, _: torch.empty_like(self),
    (torch.Tag.pointwise,),
)
POINTWISE: dict[OpOverload, Callable[..., Any]] = {POLYNOMIAL: _polynomial}
"""What each computes by operators of torch, for targets that do not have it."""
