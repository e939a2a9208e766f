# SPDX-License-Identifier: BSD-3-Clause
"""Facts about operators."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

from etx_exir.ir.dim_order import CLONE, TO_COPY

TENSORS = ("Tensor", "Optional[Tensor]")


def is_pointwise(target: Any) -> bool:
    """Whether each element of the result depends on the same element of each tensor argument.

    The arguments are broadcast to the shape of the result. What ATen tags so, and our copies.
    """
    if not isinstance(target, OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded in target.tags:
        return False
    return torch.Tag.pointwise in target.tags or target in (CLONE, TO_COPY)


def broadcasts(target: Any) -> bool:
    """Whether `target` is pointwise and takes several tensors."""
    if not is_pointwise(target):
        return False
    return sum(str(argument.type) in TENSORS for argument in target._schema.arguments) > 1
