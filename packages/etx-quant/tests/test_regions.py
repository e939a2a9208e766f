# SPDX-License-Identifier: BSD-3-Clause
"""Layers under no_grad or a disabled autocast are quantized; of control flow it is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from etx_quant import QuantizationError, QuantizationWarning, prepare_training, quantize
from torch import Tensor, nn

X = torch.linspace(-1, 1, 32).view(8, 4)


@contextmanager
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@contextmanager
def no_autocast() -> Iterator[None]:
    with torch.autocast("cpu", enabled=False):
        yield


@contextmanager
def both() -> Iterator[None]:
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        yield


class Regions(nn.Module):
    def __init__(self, region: Callable[[], object]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 64), nn.Linear(64, 2)
        self.region = region

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with self.region():  # type: ignore[attr-defined]
            y = self.first(x).relu()
            z = y.sum(-1)
        result: Tensor = self.last(y)
        return result, z


class Whole(Regions):
    @torch.no_grad()
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(x)


def quantized_linears(model: nn.Module) -> int:
    """Return how many layers read quantized weights and values."""
    assert isinstance(model, torch.fx.GraphModule)
    layers = [n for n in model.graph.nodes if n.target is torch.ops.aten.linear.default]
    reads = [[str(n.target) for n in layer.all_input_nodes[:2]] for layer in layers]
    return sum(all("dequantize" in name for name in names) for names in reads)


@pytest.mark.parametrize("region", [no_grad, no_autocast, both], ids=lambda r: r.__name__)
@pytest.mark.parametrize("kind", [Regions, Whole])
def test_layers_of_regions_are_quantized(region, kind):
    torch.manual_seed(0)
    model = kind(region).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuantizationWarning)
        quantized = quantize(model, [(X,)])
    assert quantized_linears(quantized) == 2
    for got, expected in zip(quantized(X), model(X), strict=True):
        torch.testing.assert_close(got, expected, atol=0.1, rtol=0.05)


def test_training_keeps_where_there_are_no_gradients():
    torch.manual_seed(0)
    with pytest.warns(QuantizationWarning, match="wrap_with_set_grad_enabled stays in float"):
        kept = prepare_training(Regions(no_grad), (X,))
    for prepared, count in ((kept, 1), (prepare_training(Regions(no_autocast), (X,)), 2)):
        prepared(X)[0].sum().backward()
        grads = [p.grad is not None for p in prepared.parameters() if p.dim() == 2]
        assert sum(grads) == count


class Branches(nn.Module):
    def __init__(self, *, is_last: bool) -> None:
        super().__init__()
        self.one, self.other, self.last = nn.Linear(4, 64), nn.Linear(4, 64), nn.Linear(64, 2)
        self.is_last = is_last

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = torch.cond(x.sum() > 0, self.one, self.other, (x,))
        return self.last(y) if self.is_last else y


def test_what_stays_in_branches_is_said():
    with pytest.raises(QuantizationError, match="what is inside of cond stays in float; "):
        quantize(Branches(is_last=False).eval(), [(X,)])
    with pytest.warns(QuantizationWarning, match="of cond stays in float, with 512 of 640 weights"):
        quantize(Branches(is_last=True).eval(), [(X,)])
