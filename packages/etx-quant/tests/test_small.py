# SPDX-License-Identifier: BSD-3-Clause
"""Weights and activations that are small as a whole have scales that fit them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from etx_quant import compare, quantize
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attribute")  # torch, of weight_norm
RECIPES = "int8", "int8-weight", "int8-dynamic", "int4"


def net(bias: bool) -> nn.Sequential:
    torch.manual_seed(0)
    layers = nn.Linear(32, 32, bias=False), nn.ReLU(), nn.Linear(32, 8, bias=bias)
    return nn.Sequential(*layers).eval()


@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("recipe", RECIPES)
def test_small_weights_are_not_zero(recipe: str, bias: bool, size: float) -> None:
    model, batches = net(bias), [(torch.randn(16, 32),)]
    with torch.no_grad():
        model[2].weight.mul_(size)
    quantized = quantize(model, batches, recipe=recipe)
    assert compare(model, quantized, batches).sqnr > (15 if recipe == "int4" else 34)


@pytest.mark.parametrize("recipe", ["int8-weight", "int8-dynamic", "int4"])
def test_weights_are_as_small_as_floats_are(recipe: str) -> None:
    model, batches = net(False), [(torch.randn(16, 32),)]
    with torch.no_grad():
        model[2].weight.mul_(1e-30)
    quantized = quantize(model, batches, recipe=recipe)
    scaled = [(1e30 * model(*batches[0])), (1e30 * quantized(*batches[0]))]
    torch.testing.assert_close(scaled[1], scaled[0], rtol=0.1, atol=0.1)
    assert scaled[1].abs().max() > 0.1


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9, 1e-12])
def test_small_activations_are_not_zero(size: float) -> None:
    model, batches = net(False), [(size * torch.randn(16, 32),)]
    assert compare(model, quantize(model, batches), batches).sqnr > 34


def test_a_channel_beside_larger_ones_keeps_a_bias_that_int32_holds() -> None:
    model, batches = net(True), [(torch.randn(16, 32),)]
    with torch.no_grad():
        model[2].weight[3] = 1e-20
    quantized = quantize(model, batches)
    scales = [
        value
        for name, value in quantized.state_dict().items()
        if "scale" in name and value.numel() == 8
    ]
    assert [float(each.min()) for each in scales] == [2**-16]


class Recurrent(nn.Module):
    """A recurrent layer whose matrices are made of others, and a layer behind it."""

    def __init__(self, kind: type[nn.RNNBase], made: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = kind(32, 32)
        for name in ("weight_ih_l0", "weight_hh_l0"):
            made(self.layer, name)
        self.head = nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0])  # type: ignore[no-any-return]


class Halved(nn.Module):
    """A layer whose weight is made of others, and what it computes in two parts."""

    def __init__(self, made: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = made(nn.Linear(32, 64), "weight")

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.layer(x).chunk(2, -1)
        return first * second.sigmoid()


def integers_of(model: nn.Module) -> int:
    """Return how many matrices of a model are integers."""
    return sum(t.dtype == torch.int8 and t.dim() == 2 for t in model.state_dict().values())


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("made", [weight_norm, parametrizations.weight_norm])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_with_norms_of_weights_are_quantized(
    kind: type[nn.RNNBase], made: Callable[..., nn.Module], recipe: str
) -> None:
    torch.manual_seed(0)
    model, batches = Recurrent(kind, made).eval(), [(torch.randn(5, 2, 32),)]
    quantized = quantize(model, batches, recipe=recipe)
    assert integers_of(quantized) == 3
    assert compare(model, quantized, batches).sqnr > (12 if recipe == "int4" else 30)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("is_dynamic", [False, True])
def test_weights_before_results_in_parts_are_computed(is_dynamic: bool, recipe: str) -> None:
    torch.manual_seed(0)
    model, batches = Halved(weight_norm).eval(), [(torch.randn(6, 32),)]
    shapes = ({0: torch.export.Dim("batch", min=2, max=32)},) if is_dynamic else None
    quantized = quantize(model, batches, recipe=recipe, dynamic_shapes=shapes)
    assert integers_of(quantized) == 1
    assert compare(model, quantized, batches).sqnr > (15 if recipe == "int4" else 30)
