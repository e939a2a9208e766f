# SPDX-License-Identifier: BSD-3-Clause
"""The search of a range: what torchao's observer finds, without its many steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_quant.ranges import RangeObserver
from torchao.quantization.pt2e import HistogramObserver

VALUES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "normal": lambda x: x,
    "one side": torch.exp,
    "outliers": lambda x: x**5,
    "half zeros": torch.relu,
    "zeros": torch.zeros_like,
    "one value": lambda x: torch.full_like(x, -2.5),
    "steps": lambda x: (3 * x).round(),
    "heavy tails": lambda x: x / (x.abs() + 1e-4).flip(0),
}


@pytest.mark.parametrize("count", [1, 60, 100_000])
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_it_is_torchaos(values: Callable[[torch.Tensor], torch.Tensor], count: int) -> None:
    """Range and errors are the same to the last bit, after one batch and after two."""
    torch.manual_seed(count)
    observer = RangeObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine, eps=2**-12)
    for scale in (1, 3):
        observer(scale * values(torch.randn(count)))
        theirs = HistogramObserver._non_linear_param_search(observer)
        for found, expected in zip(observer._non_linear_param_search(), theirs, strict=True):
            assert torch.equal(found, expected)


def test_few_values_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that stay in their bins are not asked for again: torchao does so 100,000 times."""
    observer = RangeObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine, eps=2**-12)
    observer(torch.linspace(-1, 1, 5))
    read = []
    get = torch.Tensor.__getitem__
    monkeypatch.setattr(torch.Tensor, "__getitem__", lambda x, i: read.append(i) or get(x, i))
    observer.calculate_qparams()
    assert len(read) < 100
