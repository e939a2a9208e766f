# SPDX-License-Identifier: BSD-3-Clause
"""How far a quantized model is from its float original."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Difference:
    """Numeric gap over a set of inputs.

    ``sqnr`` is the signal to quantization noise ratio in decibels (10·log10 of the ratio of the
    mean squares), infinite when both are equal; ``max_error`` the largest absolute difference;
    ``agreement`` the share of rows with the same arg max over the last dimension.
    """

    sqnr: float
    max_error: float
    agreement: float


def compare(
    reference: Callable[..., torch.Tensor],
    candidate: Callable[..., torch.Tensor],
    inputs: Iterable[tuple[Any, ...]],
) -> Difference:
    """Call both on every tuple of arguments; each returns one tensor of rank 1 at least."""
    signal = noise = worst = 0.0
    same = rows = 0
    with torch.no_grad():
        for arguments in inputs:
            expected, actual = reference(*arguments).double(), candidate(*arguments).double()
            error = expected - actual
            signal += float(expected.square().sum())
            noise += float(error.square().sum())
            worst = max(worst, float(error.abs().max()))
            agree = expected.argmax(-1) == actual.argmax(-1)
            same += int(agree.sum())
            rows += agree.numel()
    if rows == 0:
        raise ValueError("inputs is empty: there is nothing to compare")
    sqnr = math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf
    return Difference(sqnr, worst, same / rows)
