# SPDX-License-Identifier: BSD-3-Clause
"""The range of an activation: that of its values, or in which a function of them errs least."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from operator import sub
from typing import Any

import torch
from torch import Tensor
from torchao.quantization.pt2e import HistogramObserver

from etx_quant.rows import HIDDEN

__all__ = ["RangeObserver", "ScoresObserver"]

OF_ZEROS = 2**-12
"""The scale of nothing but zeros: a smaller one could make multipliers that kernels do not hold."""

DEPTH = 10.0
"""How far below the largest of a row scores count: exp(-10) is a hundredth of a step of 1/256."""

TRIED = 64
"""How many bounds are tried on a side at a time."""

STEP = 1e-5
"""The share of the values by which a bound moves at a time where no function is given."""

LARGEST = 2.0**30
"""Up to it the error of a range is torchao's; what is larger is measured in units of its size."""

Parameters = tuple[Tensor, Tensor]


@cache
def _bounds() -> tuple[list[float], list[float]]:
    """Return the shares at which bounds lie, from below and from above, as added step by step."""
    steps = [STEP] * (round(1 / STEP) + 1)
    return [*accumulate(steps, initial=0.0)], [*accumulate(steps, sub, initial=1.0)]


@cache
def _moved() -> tuple[Tensor, Tensor]:
    """Return the shares of ``_bounds`` after a step, float64 [steps]."""
    lows, falling = _bounds()
    return torch.tensor(lows[1:], dtype=torch.float64), torch.tensor(
        falling[1:], dtype=torch.float64
    )


class RangeObserver(HistogramObserver):  # type: ignore[misc]
    """Chooses the range of an activation with the least squared error over its histogram.

    With ``function`` it is the error of what that makes of the value. Behind a SiLU most of what is
    far below zero is nearly zero: to hold it would take half of the integers from what is above.
    """

    def __init__(self, function: Callable[[Tensor], Tensor] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.function = function
        self._found: Parameters | None = None

    def forward(self, x_orig: Tensor) -> Tensor:
        """Add ``x_orig`` to the histogram."""
        self._found = None
        if bool(x_orig.isnan().any()):  # of which no histogram is: check_ranges refuses it
            self.min_val, self.max_val = x_orig.new_full((2,), torch.nan).unbind()
            return x_orig
        result: Tensor = super().forward(x_orig)
        return result

    def calculate_qparams(self) -> Parameters:
        """Return scale and zero point."""
        scale, zero = super().calculate_qparams()
        is_zero = (self.min_val == 0) & (self.max_val == 0)
        return torch.where(is_zero, OF_ZEROS, scale), zero

    def _non_linear_param_search(self) -> Parameters:
        if self._found is None:
            self._found = self._search()
        return self._found

    def _search(self) -> Parameters:
        if self.function is None:
            return self._narrowed()
        low, high = self.min_val.clamp(max=0).double(), self.max_val.clamp(min=0).double()
        width = (self.max_val - self.min_val).double() / self.bins
        values = self.min_val.double() + (torch.arange(self.bins) + 0.5) * width
        expected = self.function(values)
        chosen = (self.histogram > 0) & expected.isfinite()
        table = values[chosen], self.histogram[chosen].double(), expected[chosen]
        shares = torch.linspace(1, 1 / TRIED, TRIED, dtype=torch.float64)[:, None]
        for _ in range(2):
            low = (shares * low)[self._errors(shares * low, high, *table).argmin()]
            high = (shares * high)[self._errors(low, shares * high, *table).argmin()]
        return low.float().reshape(()), high.float().reshape(())

    def _narrowed(self) -> Parameters:
        """Return what torchao's observer finds.

        It narrows the range from both sides by shares of the values as long as the error falls.
        Most of its steps stay in a bin, 100,000 of them where values are few: here they are one.
        """
        below = self.histogram.cumsum(0)
        held, total = below.tolist(), self.histogram.sum().item()
        lows, falling = _bounds()
        rising, sinking = _moved()
        floors = (total * rising).float().tolist()
        negated = (-total * sinking).float().tolist()
        first, last, up, down, least = 0, self.bins - 1, 0, 0, float("inf")
        while lows[up] < falling[down]:
            left = min(max(bisect_left(held, floors[up]), first), last)
            if left == first:
                down = bisect_right(negated, -held[last], down)
                if first == last or down >= len(negated) or lows[up] >= falling[down]:
                    break
            right = max(min(bisect_right(held, -negated[down]) - 1, last), first)
            if left - first > last - right:
                bounds, up = (left, last), up + 1
            else:
                bounds, down = (first, right), down + 1
            error = self._error(*bounds)
            if error > least:
                break
            (first, last), least = bounds, error
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def _error(self, first: int, last: int) -> float:
        """Return torchao's error of a range of bins, whose cubes float32 holds."""
        held = self.min_val, self.max_val
        size = max(abs(float(each)) for each in held)
        unit = 2.0 ** math.frexp(size)[1] if size > LARGEST else 1.0
        try:
            self.min_val, self.max_val = (each / unit for each in held)
            return float(self._compute_quantization_error(first, last))
        finally:
            self.min_val, self.max_val = held

    def _errors(
        self, low: Tensor, high: Tensor, values: Tensor, weights: Tensor, expected: Tensor
    ) -> Tensor:
        """Return the squared error in the function for each range, [tried]."""
        scale = ((high - low) / (self.quant_max - self.quant_min)).clamp(min=float(self.eps))
        zero = (self.quant_min - low / scale).round().clamp(self.quant_min, self.quant_max)
        integers = ((values / scale).round() + zero).clamp(self.quant_min, self.quant_max)
        assert self.function is not None
        error = self.function((integers - zero) * scale) - expected
        return (error.square() * weights).sum(1).nan_to_num(torch.inf)


class ScoresObserver(RangeObserver):
    """Chooses the range of what a softmax along ``dim`` alone reads, masked scores among it.

    Whatever is DEPTH below the largest of its row has no part in the result, and counts as if it
    were there: integers stand for what has. The range reaches so far in any case, as another mask
    hides what none of calibration did. A row that is hidden whole does not count.
    """

    def __init__(self, dim: int = -1, **options: Any) -> None:
        super().__init__(function=self._counted, **options)
        self.dim, self.floor = dim, torch.inf

    def forward(self, x_orig: Tensor) -> Tensor:
        """Add what counts of ``x_orig`` to the histogram."""
        largest = x_orig.amax(self.dim, keepdim=True)
        counts = (largest > HIDDEN / 2).expand_as(x_orig)
        seen = x_orig.maximum(largest - DEPTH)[counts]
        super().forward(seen if seen.numel() else x_orig.new_zeros(1))
        rows = largest[largest > HIDDEN / 2]
        if rows.numel():
            self.floor = min(self.floor, float(rows.min()) - DEPTH)
        return x_orig

    def _counted(self, x: Tensor) -> Tensor:
        return x.clamp(min=min(self.floor, float(self.min_val)))

    def _search(self) -> Parameters:
        low, high = self._narrowed()
        return low.clamp(max=self.floor), high
