# SPDX-License-Identifier: BSD-3-Clause
"""Functions between integers: int8 in, floats inside, int8 out, each with a scale of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor, nn

decomposed = torch.ops.quantized_decomposed
LIMITS = (-128, 127, torch.int8)


def affine(low: float, high: float) -> tuple[float, int]:
    """Return a scale and zero point for a range."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max(high - low, 1e-3) / 255
    return scale, round(-128 - low / scale)


class Between(nn.Module):
    """``function`` of dequantized inputs, its tensors quantized in the range they have there."""

    def __init__(self, function: Callable[..., Any], *inputs: Tensor, scale: float = 0.05) -> None:
        super().__init__()
        self.function = function
        self.forms = [(scale * (i + 1), 5 * i - 3) for i in range(len(inputs))]
        self.made: list[tuple[float, int]] | None = None
        self(*inputs)

    def forward(self, *inputs: Tensor) -> Any:
        reals = [
            decomposed.dequantize_per_tensor(x, *form, *LIMITS)
            for x, form in zip(inputs, self.forms, strict=True)
        ]
        made = self.function(*reals)
        many = made if isinstance(made, (list, tuple)) else [made]
        if self.made is None:
            self.made = [affine(float(each.min()), float(each.max())) for each in many]
        results = [
            decomposed.quantize_per_tensor(each, *form, *LIMITS)
            for each, form in zip(many, self.made, strict=True)
        ]
        return results if isinstance(made, (list, tuple)) else results[0]


def integers(*shape: int, seed: int = 0) -> Tensor:
    """Return int8 of the whole range."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-128, 128, shape, generator=generator).to(torch.int8)
