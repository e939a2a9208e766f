# SPDX-License-Identifier: BSD-3-Clause
"""Attention as models write it by hand: what hides scores is known at run time only."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from case import Case
from torch import Tensor, nn

HEADS, WIDTH, ROWS = 4, 32, 6
LOWEST = torch.finfo(torch.float32).min
NUMBER = "aten.scalar_tensor.default"
ONE, BOTH = (NUMBER, NUMBER, "aten.where.self"), (NUMBER, NUMBER, "aten.where.self") * 2
GIVEN = (NUMBER, "aten.where.self") * 2
Hide = Callable[[Tensor, Tensor], Tensor]


class Scores(nn.Module):
    """Attention whose scores are hidden by a function of a mask."""

    def __init__(self, hide: Hide, shared: int) -> None:
        super().__init__()
        self.hide, self.shared = hide, shared
        inner = WIDTH * shared // HEADS
        self.q, self.k, self.v = (nn.Linear(WIDTH, n) for n in (WIDTH, inner, inner))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        parts = (self.q, self.k, self.v)
        q, k, v = (part(x).unflatten(-1, (-1, 8)).transpose(1, 2) for part in parts)
        k, v = (part.repeat_interleave(HEADS // self.shared, 1) for part in (k, v))
        scores = self.hide(q @ k.transpose(-1, -2) / math.sqrt(8), mask)
        mixed: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return mixed


GT = "aten.gt.Scalar"
FORMS: list[tuple[str, Hide, tuple[str, ...], int]] = [
    ("infinity", lambda s, m: s.masked_fill(m > 1, -math.inf), (GT, *ONE), HEADS),
    ("number", lambda s, m: s.masked_fill(m > 1, -1e9), (GT, *BOTH), HEADS),
    ("where", lambda s, m: torch.where(m > 1, LOWEST, s), (GT, *GIVEN), HEADS),
    ("added", lambda s, m: s + (1 - m) * -10000.0, (), HEADS),
    ("groups", lambda s, m: s.masked_fill(m > 1, -math.inf), (GT, *ONE), 2),
    ("capped", lambda s, m: (9 * (s / 9).tanh()).masked_fill(m > 1, -math.inf), (GT, *ONE), HEADS),
    (
        "twice",
        lambda s, m: s.masked_fill(m > 1, -9.0).masked_fill(m > 1, -3.0),
        (GT, *BOTH * 2),
        HEADS,
    ),
]
HIDDEN = [
    Case(
        f"hidden_by_{name}",
        lambda hide=hide, shared=shared: Scores(hide, shared),
        [(2, ROWS, WIDTH), (2, 1, 1, ROWS)],
        outside=outside,
    )
    for name, hide, outside, shared in FORMS
]
