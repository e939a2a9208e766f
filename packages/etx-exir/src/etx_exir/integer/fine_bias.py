# SPDX-License-Identifier: BSD-3-Clause
"""A weight of depth one, its bias a fraction: ``(127 x + b) s`` -> ``(n x + c) (127 s / n)``."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["as_fractions"]

LARGEST = 127


def as_fractions(weight: Tensor, scales: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Return integers and scales that stand for the same weights, with a finer unit for a bias.

    `weight` is int8 of one number a channel, `scales` are the channels' in float64, and `bias` is
    in steps of the input. A bias is rounded to a whole number of products: of one weight, by up
    to 1/254 of a step of the input, which moves a whole channel where it takes a result past a
    half. As a fraction of another number of products up to 127 most are far nearer.
    """
    value = weight.double().flatten() * scales
    numbers = torch.arange(LARGEST, 0, -1, dtype=torch.float64)
    exact = bias.double()[:, None] / value.abs()[:, None] * numbers
    error = (exact.round() - exact).abs() / numbers
    chosen = numbers[error.argmin(1)]
    apart = value != 0
    integers = torch.where(apart, chosen * value.sign(), 0).to(torch.int8).view(weight.shape)
    return integers, torch.where(apart, value.abs() / chosen, scales)
