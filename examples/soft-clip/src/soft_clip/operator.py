# SPDX-License-Identifier: BSD-3-Clause
"""The operator's name, for the build host: what torch.export records."""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("demo::soft_clip", mutates_args=())
def soft_clip(x: Tensor, limit: float) -> Tensor:
    """Return limit * tanh(x / limit)."""
    return limit * torch.tanh(x / limit)


@soft_clip.register_fake
def _(x: Tensor, limit: float) -> Tensor:
    return torch.empty_like(x)
