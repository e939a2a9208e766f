# SPDX-License-Identifier: BSD-3-Clause
"""Masks that come with a call, of any value that hides: static int8 is as near as without one."""

from __future__ import annotations

from collections.abc import Callable

import etx_runtime
import pytest
import torch
from etx_exir import compile
from etx_quant import QuantizationError, compare, quantize
from torch import Tensor, nn

LOWEST = torch.finfo(torch.float32).min
Mask = Callable[[Tensor], Tensor]
MASKS: dict[str, tuple[Callable[[Tensor], Tensor], Mask]] = {
    "infinite": (
        lambda hidden: torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf),
        torch.clone,
    ),
    "least": (lambda hidden: hidden * LOWEST, torch.clone),
    "large": (lambda hidden: hidden * -1e4, torch.clone),
    "small": (lambda hidden: hidden * -100.0, torch.clone),
    "of truths": (lambda hidden: hidden, lambda m: m.float() * -1e4),
    "of numbers": (lambda hidden: 1 - hidden.long(), lambda m: (1.0 - m[None].float()) * LOWEST),
}


class Scored(nn.Module):
    """Values weighted by scores of a layer, which are masked."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.scores, self.values, self.mask = nn.Linear(16, 6), nn.Linear(16, 16), mask
        self.head = nn.Linear(16, 8)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        weights = (self.scores(x) + self.mask(mask)).softmax(-1)
        return self.head(weights @ self.values(x))


class Attention(nn.Module):
    """Attention as models write it by hand."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in "qkv")
        self.head, self.mask = nn.Linear(16, 8), mask

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(-1, (4, 4)).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) / 2 + self.mask(mask)
        return self.head((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def drawn(make: Callable[[Tensor], Tensor], count: int) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    hidden = [torch.rand(6, 6) < 0.5 for _ in range(count)]
    return [(torch.randn(2, 6, 16), make(h.fill_diagonal_(False))) for h in hidden]


@pytest.mark.parametrize("make", [Scored, Attention])
@pytest.mark.parametrize("name", MASKS)
def test_masks_that_come_with_a_call(name: str, make: Callable[[Mask], nn.Module]) -> None:
    given, mask = MASKS[name]
    model = make(mask).eval()
    calls = drawn(given, 3)
    quantized = quantize(model, calls)
    assert compare(model, quantized, calls).sqnr > 30
    program = torch.export.export(quantized, calls[0])
    device = etx_runtime.load(compile(program).buffer, outputs="torch")
    assert compare(quantized, device, calls).sqnr > 38


@pytest.mark.parametrize("wrong", [torch.inf, torch.nan])
def test_other_infinite_values_are_refused(wrong: float) -> None:
    mask = torch.zeros(6, 6)
    mask[2, 3] = wrong
    with pytest.raises(QuantizationError, match="1 of 36 values are not finite"):
        quantize(Attention(torch.clone), [(torch.randn(2, 6, 16), mask)])
