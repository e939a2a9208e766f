# SPDX-License-Identifier: BSD-3-Clause
"""Models that write into buffers: calibration leaves their state as it was."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from etx_quant import QuantizationError, compare, quantize, quantize_with_report
from etx_quant.recipes import RECIPES
from torch import Tensor, nn


class Stream(nn.Module):
    """Adds what it returned last to its input, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.last, self.calls = nn.Buffer(torch.zeros(2, 8)), nn.Buffer(torch.tensor(0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x + self.last).tanh()
        self.last.copy_(y)
        self.calls.add_(1)
        return y, self.calls.clone()


@pytest.mark.parametrize("options", [{}, {"target_sqnr": 15.0}], ids=["whole", "to a target"])
@pytest.mark.parametrize("recipe", ["int8", "int8-dynamic"])
@pytest.mark.parametrize("with_report", [False, True])
def test_the_first_call_is_the_first(
    with_report: bool, recipe: str, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    model, calls = Stream().eval(), [(torch.randn(2, 8),) for _ in range(3)]
    if with_report:
        quantized, _ = quantize_with_report(model, calls, recipe=recipe, **options)
    else:
        quantized = quantize(model, calls, recipe=recipe, **options)
    assert int(model.calls) == 0
    assert not model.last.any()
    expected, found = (copy.deepcopy(each)(*calls[0]) for each in (model, quantized))
    assert int(found[1]) == 1
    assert (expected[0] - found[0]).abs().max() < 0.05


@pytest.mark.parametrize("recipe", ["int8", "int8-dynamic"])
def test_state_is_measured_as_a_stream_has_it(recipe: str) -> None:
    torch.manual_seed(0)
    model, calls = Stream().eval(), [(torch.randn(2, 8),) for _ in range(3)]
    with torch.no_grad():
        model(*calls[0])

    def counts(called: Any) -> float:
        return float(all(int(called(*call)[1]) == 2 + i for i, call in enumerate(calls)))

    quantized, report = quantize_with_report(
        model, calls, recipe=recipe, accuracy=counts, least_accuracy=1.0
    )
    assert not report.kept
    assert report.layers[-1].sqnr > 30
    found = compare(*copy.deepcopy((model, quantized)), calls).sqnr
    assert report.sqnr == pytest.approx(found)
    assert found > 30
    quantized(*calls[0])
    assert int(model.calls) == 1


def test_a_refusal_of_a_model_of_inference_mode_says_why() -> None:
    with torch.inference_mode():
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
        quantize(model, [(torch.rand(2, 4),)])
    with pytest.raises(QuantizationError, match="Inference tensors"):
        quantize(model, [(torch.rand(2, 4),)])


LAYERS = [nn.Linear(4, 4), nn.Conv1d(4, 4, 1)]


@pytest.mark.parametrize("layer", LAYERS, ids=["linear", "conv"])
def test_a_bias_that_is_nan_is_refused(layer: nn.Module) -> None:
    layer = copy.deepcopy(layer)
    with torch.no_grad():
        layer.get_parameter("bias")[0] = torch.nan
    with pytest.raises(QuantizationError, match="reaches nan, of which no range can be made"):
        quantize(layer, [(torch.randn(2, 4, 4),)])


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize(
    ("kind", "recipe"),
    [*itertools.product(("linear", "embedding", "lstm"), sorted(RECIPES)), ("conv", "int8")],
)
def test_weights_that_no_integers_stand_for_are_refused(
    kind: str, recipe: str, value: float
) -> None:
    layers = {"linear": nn.Linear(8, 32), "conv": nn.Conv1d(8, 32, 1)}
    layers |= {"embedding": nn.Embedding(8, 32), "lstm": nn.LSTM(8, 32)}
    x = torch.zeros(2, 8, dtype=torch.long) if kind == "embedding" else torch.randn(2, 8, 8)
    model = nn.Sequential()
    model.add_module("named", layers[kind])
    with torch.no_grad():
        next(model.parameters()).view(-1)[3] = value
    with pytest.raises(QuantizationError, match=r"'named.*1 of \d+ values of its weight are NaN"):
        quantize(model, [(x,)], recipe=recipe, group_size=8)


def test_one_group_is_a_row() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(24, 7), torch.randn(3, 24)
    whole = quantize(model, [(x,)], recipe="int4", group_size=None)
    torch.testing.assert_close(whole(x), quantize(model, [(x,)], recipe="int4", group_size=24)(x))


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
@pytest.mark.filterwarnings("ignore:The tensor attribute:UserWarning")
def test_the_scale_beside_a_weight_is_no_row_of_it() -> None:
    torch.manual_seed(0)
    model, x = nn.utils.weight_norm(nn.Linear(16, 8)).eval(), torch.randn(3, 5, 16)
    quantized = quantize(model, [(x,)], recipe="int4", group_size=8)
    expected = model(x)
    assert (expected - quantized(x)).abs().max() < 0.2 * expected.abs().max()
