# SPDX-License-Identifier: BSD-3-Clause
"""Draws dtypes, shapes, numbers and tensors; everything follows from the seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from arguments import DTYPES
from harness import Kernel

T = TypeVar("T")
FLOATING = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGRAL = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMMON = (*FLOATING, *INTEGRAL, torch.bool)
SIZES = (1, 1, 2, 2, 3, 3, 4, 5, 7)
MOST_ELEMENTS = 4000
ODD_FLOATS = (
    *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0, 2.0, -3.0, 1e-3, 300.0, -300.0, 1e5, -1e5),
    *(math.nan, math.inf, -math.inf, 1e-40, -1e-40, 6e-8, 1e30, -1e30, 3.4e38, 65504.0),
    *(2.0**24 + 1, 2.0**31, -(2.0**31), 2.0**53 + 1, 2.0**63, -(2.0**63), 88.0, -88.0, 0.9999),
)
ODD_INTS = (
    *(0, 1, -1, 2, -2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 257, 300, -128),
    *(-129, -300, 32767, 32768, 65535, 2**31 - 1, 2**31, -(2**31), 2**33, 2**53 + 1),
    *(2**63 - 1, -(2**63), 2**62),
)


class Draw:
    """One call's source of chance."""

    def __init__(self, seed: str, kernel: Kernel):
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(self.random.getrandbits(60))
        self.kernel = kernel
        self.odd = self.chance(0.35)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one(self, *choices: T) -> T:
        return self.random.choice(choices)

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def dtype(self, *choices: torch.dtype) -> torch.dtype:
        """A dtype of the kernel's row; one time in twelve any."""
        if self.chance(1 / 12):
            return self.one(*COMMON)
        listed = [d for d in choices or COMMON if self.kernel.lists(d)]
        return self.one(*(listed or choices or COMMON))

    def any_dtype(self) -> torch.dtype:
        """A dtype of the kernel's row, among those that few operators know."""
        if self.chance(0.8):
            return self.dtype()
        return self.one(*(d for d in DTYPES if self.kernel.lists(d) and d != torch.complex32))

    def rank(self, low: int = 0, high: int = 9) -> int:
        ranks = [r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 9) if low <= r <= high]
        return self.one(*ranks)

    def size(self) -> int:
        if self.chance(0.03):
            return 0
        return self.int(17, 130) if self.chance(0.06) else self.one(*SIZES)

    def shape(self, low: int = 0, high: int = 9) -> list[int]:
        sizes: list[int] = []
        for _ in range(self.rank(low, high)):
            size = self.size()
            sizes.append(size if math.prod(sizes) * size <= MOST_ELEMENTS else 1)
        return sizes

    def dim(self, rank: int) -> int:
        if self.chance(0.03):
            return self.one(-rank - 1, rank, rank + 1)
        return self.int(-rank, rank - 1) if rank else self.one(0, -1)

    def dims(self, rank: int, least: int = 0) -> list[int]:
        chosen = self.random.sample(range(rank), self.int(min(least, rank), rank))
        return [d - rank if self.chance(0.3) else d for d in chosen]

    def broadcastable(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts with `shape`, most of the time."""
        match self.int(0, 9):
            case 0 | 1 | 2 | 3:
                return list(shape)
            case 4 | 5:
                return []
            case 6:
                return [1]
            case 7:
                return list(shape[self.int(0, len(shape)) :])
            case 8:
                return [size if self.chance(0.5) else 1 for size in shape]
            case _:
                return [*([self.one(1, 2)] if len(shape) < 9 else []), *shape]

    def floats(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        ordinary = torch.randn(count, generator=self.generator, dtype=torch.float64)
        ordinary = ordinary * self.one(0.1, 1.0, 3.0, 3.0, 30.0)
        if not self.odd:
            return ordinary.to(dtype)
        special = torch.tensor(self.random.choices(ODD_FLOATS, k=count), dtype=torch.float64)
        few = self.one(0.1, 0.5, 1.0)
        return torch.where(self.mask(count, few), special, ordinary).to(dtype)

    def mask(self, count: int, share: float = 0.5) -> torch.Tensor:
        return torch.rand(count, generator=self.generator) < share

    def ints(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        ordinary = torch.randint(-12, 13, (count,), generator=self.generator)
        if not self.odd:
            return ordinary.to(dtype)
        special = torch.tensor(self.random.choices(ODD_INTS, k=count), dtype=torch.int64)
        few = self.one(0.1, 0.5, 1.0)
        return torch.where(self.mask(count, few), special, ordinary).to(dtype)

    def flat(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        if dtype == torch.bool:
            return self.mask(count)
        if dtype.is_complex:
            return torch.complex(
                self.floats(count, torch.float64), self.floats(count, torch.float64)
            ).to(dtype)
        return self.floats(count, dtype) if dtype.is_floating_point else self.ints(count, dtype)

    def tensor(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> torch.Tensor:
        """A tensor of this shape; at times dense in another order of its dimensions."""
        dtype = self.dtype() if dtype is None else dtype
        data = self.flat(math.prod(shape), dtype)
        if len(shape) == 4 and self.chance(0.25):
            order = [0, 2, 3, 1]
        elif len(shape) > 1 and self.chance(0.1):
            order = self.random.sample(range(len(shape)), len(shape))
        else:
            return data.reshape(list(shape))
        inverse = [order.index(d) for d in range(len(order))]
        return data.reshape([shape[d] for d in order]).permute(inverse)

    def within(self, shape: Sequence[int], limit: int, dtype: torch.dtype | None = None) -> Any:
        """Indices below `limit`, negative ones at times, and one beyond it rarely."""
        low = -limit if limit and self.chance(0.2) else 0
        high = max(limit, 1) + (1 if self.chance(0.04) else 0)
        data = torch.randint(low, high, list(shape), generator=self.generator)
        return data.to(dtype or self.one(torch.int64, torch.int64, torch.int32))

    def number(self, integral: float = 0.5) -> float:
        """A number for an argument that takes any."""
        if self.chance(0.05):
            return self.one(True, False)
        if self.chance(integral):
            return self.one(*ODD_INTS) if self.odd else self.int(-4, 9)
        return self.one(*ODD_FLOATS) if self.odd else round(self.random.uniform(-4, 4), 2)

    def number_for(self, dtype: torch.dtype) -> float:
        return self.number(0.4 if dtype.is_floating_point else 0.85)
