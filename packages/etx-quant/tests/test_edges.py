# SPDX-License-Identifier: BSD-3-Clause
"""Integers as inputs and results of a quantized model."""

from __future__ import annotations

import copy

import etx_runtime
import pytest
import torch
from etx_exir import compile
from etx_quant import Integers, QuantizationError, quantize, quantize_edges
from torch import Tensor, nn
from torch.fx import GraphModule


class Net(nn.Module):
    """Two inputs, one of them also read in float; two results, one of them float."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv2d(3, 8, 3), nn.Linear(288, 10)

    def forward(self, image: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.enter(image)).flatten(1)
        return self.leave(x), torch.softmax(gain, -1)


@pytest.fixture(scope="module")
def model() -> tuple[GraphModule, Tensor, Tensor]:
    torch.manual_seed(0)
    image, gain = torch.rand(2, 3, 8, 8), torch.rand(4)
    return quantize(Net().eval(), [(image, gain)]), image, gain


def to_integers(x: Tensor, meaning: Integers) -> Tensor:
    values = (x / meaning.scale + meaning.zero_point).round()
    return values.clamp(meaning.least, meaning.most).to(meaning.dtype)


def to_floats(x: Tensor, meaning: Integers) -> Tensor:
    return (x.float() - meaning.zero_point) * meaning.scale


def test_both_edges(model: tuple[GraphModule, Tensor, Tensor]) -> None:
    quantized, image, gain = model
    logits, shares = quantized(image, gain)
    edged = copy.deepcopy(quantized)
    inputs, outputs = quantize_edges(edged, inputs=[0], outputs=[0])
    integers = to_integers(image, inputs[0])
    found, other = edged(integers, gain)
    assert found.dtype == torch.int8
    torch.testing.assert_close(to_floats(found, outputs[0]), logits)
    torch.testing.assert_close(other, shares)
    program = torch.export.export(edged, (integers, gain))
    device = torch.as_tensor(etx_runtime.load(compile(program).buffer)(integers, gain)[0])
    assert device.dtype == torch.int8
    assert int((device.int() - found.int()).abs().max()) <= 1


def test_results_alone(model: tuple[GraphModule, Tensor, Tensor]) -> None:
    quantized, image, gain = model
    edged = copy.deepcopy(quantized)
    inputs, outputs = quantize_edges(edged, inputs=(), outputs=[0])
    assert not inputs
    logits, _ = edged(image, gain)
    torch.testing.assert_close(to_floats(logits, outputs[0]), quantized(image, gain)[0])


WRONG = {
    "input in float": ({"inputs": [1], "outputs": ()}, r"input 1 \(gain\) is read in float by"),
    "output in float": (
        {"inputs": (), "outputs": [1]},
        "output 1 .* made in float by aten.softmax",
    ),
    "all": ({}, "is read in float by aten.softmax"),
    "no such": ({"inputs": [2]}, r"input 2 is not a float tensor of the model: \[0, 1\] are"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refuses_edges_that_are_float(name: str, model: tuple[GraphModule, Tensor, Tensor]) -> None:
    options, message = WRONG[name]
    with pytest.raises(QuantizationError, match=message):
        quantize_edges(copy.deepcopy(model[0]), **options)


def test_an_input_that_nothing_reads_is_named() -> None:
    class Half(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, x: Tensor, spare: Tensor) -> Tensor:
            return self.layer(x)

    quantized = quantize(Half().eval(), [(torch.randn(2, 8), torch.randn(2, 3))])
    with pytest.raises(QuantizationError, match=r"input 1 \(spare\) is read by nothing"):
        quantize_edges(quantized)
    inputs, _ = quantize_edges(quantized, inputs=[0])
    assert [*inputs] == [0]
