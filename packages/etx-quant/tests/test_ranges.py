# SPDX-License-Identifier: BSD-3-Clause
"""The search of a range: what torchao's observer finds, without its many steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_quant.ranges import DEPTH, RangeObserver, ScoresObserver
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


@pytest.mark.parametrize("size", [2.0**29, 2.0**31, 2.0**60, 2.0**90])
def test_large_values_have_the_range_of_small_ones(size: float) -> None:
    torch.manual_seed(0)
    batches = [torch.randn(1000) for _ in range(3)]
    options = {"dtype": torch.int8, "qscheme": torch.per_tensor_affine, "eps": 2**-12}
    one, other = RangeObserver(**options), RangeObserver(**options)
    for batch in batches:
        one(batch)
        other(batch * size)
    (scale, zero), (large, moved) = one.calculate_qparams(), other.calculate_qparams()
    torch.testing.assert_close(large / size, scale, rtol=0.02, atol=0)
    assert abs(int(zero) - int(moved)) <= 1


def test_few_values_take_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that stay in their bins are not asked for again: torchao does so 100,000 times."""
    observer = RangeObserver(dtype=torch.int8, qscheme=torch.per_tensor_affine, eps=2**-12)
    observer(torch.linspace(-1, 1, 5))
    read = []
    get = torch.Tensor.__getitem__
    monkeypatch.setattr(torch.Tensor, "__getitem__", lambda x, i: read.append(i) or get(x, i))
    observer.calculate_qparams()
    assert len(read) < 100


@pytest.mark.parametrize("low", [-torch.inf, torch.finfo(torch.float32).min, -1e4, -100.0])
def test_masked_scores_take_no_range(low: float) -> None:
    """The range is that of the scores, and DEPTH below the largest of a row, whatever hides."""
    torch.manual_seed(0)
    scores = torch.rand(2, 50, 50) * 6 - 3
    later = torch.ones(50, 50, dtype=torch.bool).triu(1)
    options = {"dtype": torch.int8, "qscheme": torch.per_tensor_affine, "eps": 2**-12}
    observer = ScoresObserver(dim=-1, **options)
    observer(scores.masked_fill(later, low))
    scale, zero = (float(each) for each in observer.calculate_qparams())
    first, last = (-128 - zero) * scale, (127 - zero) * scale
    assert -3 - DEPTH - 0.2 < first < 3 - DEPTH
    assert 2.9 < last < 3.1
    held = ((scores / scale).round() + zero).clamp(-128, 127).sub(zero) * scale
    hidden = held.masked_fill(later, first).softmax(-1)
    expected = scores.masked_fill(later, low).softmax(-1)
    torch.testing.assert_close(hidden, expected, atol=0.01, rtol=0)


def test_rows_that_are_hidden_whole_do_not_count() -> None:
    options = {"dtype": torch.int8, "qscheme": torch.per_tensor_affine, "eps": 2**-12}
    torch.manual_seed(0)
    scores, observers = torch.rand(8, 20), [ScoresObserver(dim=-1, **options) for _ in range(3)]
    observers[0](scores)
    observers[1](torch.cat([scores, scores - 1000, torch.full((1, 20), -torch.inf)]))
    assert observers[0].calculate_qparams() == observers[1].calculate_qparams()
    observers[2](scores - 1000)
    scale, zero = observers[2].calculate_qparams()
    assert scale > 0
    assert zero == -128


def test_the_range_holds_what_no_mask_of_calibration_hid() -> None:
    torch.manual_seed(0)
    scores = torch.rand(64, 200) * 4 - 2
    observer = ScoresObserver(dim=-1, dtype=torch.int8, qscheme=torch.per_tensor_affine, eps=2**-12)
    observer(scores)
    scale, zero = (float(each) for each in observer.calculate_qparams())
    assert (-128 - zero) * scale < float(scores.amax(-1).min()) - DEPTH + scale
