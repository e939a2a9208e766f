# SPDX-License-Identifier: BSD-3-Clause
"""Functions between integers: int8 in, floats inside, int8 out, each with a scale of its own.

Of int16, zero points are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor, nn

decomposed = torch.ops.quantized_decomposed
LIMITS = {
    torch.int8: (-128, 127, torch.int8),
    torch.int16: (-(2**15) + 1, 2**15 - 1, torch.int16),
}


def affine(low: float, high: float, dtype: torch.dtype = torch.int8) -> tuple[float, int]:
    """Return a scale and zero point for a range."""
    if dtype == torch.int16:
        return max(-low, high, 1e-3) / (2**15 - 1), 0
    low, high = min(low, 0.0), max(high, 0.0)
    scale = max(high - low, 1e-3) / 255
    return scale, round(-128 - low / scale)


class Between(nn.Module):
    """``function`` of dequantized inputs, its tensors quantized in the range they have there."""

    def __init__(self, function: Callable[..., Any], *inputs: Tensor, scale: float = 0.05) -> None:
        super().__init__()
        self.function = function
        self.dtype = next(x.dtype for x in inputs if x.dtype in LIMITS)
        wide = self.dtype == torch.int16
        self.forms = [
            (scale * (i + 1) / (256 if wide else 1), 0 if wide else 5 * i - 3)
            for i in range(len(inputs))
        ]
        self.made: list[tuple[float, int]] | None = None
        self(*inputs)

    def forward(self, *inputs: Tensor) -> Any:
        limits = LIMITS[self.dtype]
        reals = [
            decomposed.dequantize_per_tensor(x, *form, *limits) if x.dtype == self.dtype else x
            for x, form in zip(inputs, self.forms, strict=True)
        ]
        made = self.function(*reals)
        many = made if isinstance(made, (list, tuple)) else [made]
        if self.made is None:
            self.made = [affine(float(each.min()), float(each.max()), self.dtype) for each in many]
        results = [
            decomposed.quantize_per_tensor(each, *form, *limits)
            for each, form in zip(many, self.made, strict=True)
        ]
        return results if isinstance(made, (list, tuple)) else results[0]


def integers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.int8) -> Tensor:
    """Return integers of the whole range."""
    generator = torch.Generator().manual_seed(seed)
    low, high, _ = LIMITS[dtype]
    return torch.randint(low, high + 1, shape, generator=generator).to(dtype)
