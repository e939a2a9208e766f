# SPDX-License-Identifier: BSD-3-Clause
"""How far a quantized model is from its float original."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

__all__ = ["Difference", "compare", "decibels", "errors", "is_same"]


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
    reference: Callable[..., Any],
    candidate: Callable[..., Any],
    inputs: Iterable[Any],
) -> Difference:
    """Call both on every tuple, or dict, of arguments; compare the float tensors they return."""
    signal = noise = worst = 0.0
    same = rows = calls = 0
    with torch.no_grad():
        for arguments in inputs:
            calls += 1
            pairs = zip(_floats(reference, arguments), _floats(candidate, arguments), strict=True)
            for expected, actual in pairs:
                power, lost, error = errors(expected, actual)
                signal, noise, worst = signal + power, noise + lost, max(worst, error)
                agree = expected.argmax(-1) == actual.argmax(-1)
                same += int(agree.sum())
                rows += agree.numel()
    if calls == 0:
        raise ValueError("inputs is empty: there is nothing to compare")
    return Difference(decibels(signal, noise), worst, same / rows if rows else 1.0)


def _floats(model: Callable[..., Any], arguments: Any) -> list[Tensor]:
    result = model(**arguments) if isinstance(arguments, dict) else model(*arguments)
    leaves = pytree.tree_leaves(result)
    found = [x for x in leaves if isinstance(x, Tensor) and x.is_floating_point() and x.numel()]
    return [x.double() for x in found]


def errors(expected: Tensor, actual: Tensor) -> tuple[float, float, float]:
    """Return the power of the signal and of the noise, and the largest absolute error.

    Where both are minus infinity, as of a mask, or NaN, there is neither.
    """
    x, y = expected.double(), actual.double()
    if not x.numel():
        return 0.0, 0.0, 0.0
    error = torch.where(_same(x, y), 0.0, x - y)
    signal = torch.where(x.isfinite(), x, 0.0)
    return float(signal.square().sum()), float(error.square().sum()), float(error.abs().max())


def is_same(x: Tensor, y: Tensor) -> bool:
    """Tell whether two tensors are equal, NaN at the same places included."""
    return x.shape == y.shape and bool(_same(x, y).all())


def _same(x: Tensor, y: Tensor) -> Tensor:
    return (x == y) | ((x != x) & (y != y))


def decibels(signal: float, noise: float) -> float:
    """Return 10·log10 of signal to noise, infinite without noise."""
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal and noise < math.inf else -math.inf
