# SPDX-License-Identifier: BSD-3-Clause
"""Programs compute with torch's operators what eager does."""

from __future__ import annotations

import pickle
import threading

import etx_runtime
import pytest
import torch
from counter import Counter
from torch import nn
from torch.testing import assert_close


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x):
        return (self.inner(x) + x).relu()


def image_model():
    layers = (nn.Conv2d(3, 8, 7, stride=2), nn.MaxPool2d(3, 2, 1), Residual(8), Residual(8))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)).eval()


@pytest.mark.parametrize("kernels", ["aten", ["portable", "aten"], ["aten", "portable"]])
def test_an_image_model_is_eager(compiled, kernels):
    model, x = image_model(), torch.randn(2, 3, 32, 32)
    assert_close(compiled(model, (x,), kernels)(x), model(x), rtol=1e-5, atol=1e-6)


def test_channels_last(compiled):
    model = image_model().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 32, 32).to(memory_format=torch.channels_last)
    assert_close(compiled(model, (x,))(x), model(x), rtol=1e-5, atol=1e-6)


class Found(nn.Module):
    def forward(self, x):
        places = torch.nonzero(x > 0)
        torch._check(places.shape[0] <= 192)
        runs, lengths = torch.unique_consecutive(x > 0, return_counts=True)
        torch._check(runs.shape[0] <= 192)
        return places, runs, lengths, torch.cat([x, x]).reshape(-1)[: x.shape[0]]


@pytest.mark.parametrize("rows", [2, 5, 64])
def test_sizes_that_the_data_decide(compiled, rows):
    shapes = ({0: torch.export.Dim("n", min=2, max=64)},)
    program = compiled(Found(), (torch.randn(5, 3),), dynamic_shapes=shapes)
    x = torch.randn(rows, 3)
    for given, expected in zip(program(x), Found()(x), strict=True):
        assert_close(given, expected)


def test_more_than_was_planned(compiled):
    class Few(nn.Module):
        def forward(self, x):
            places = torch.nonzero(x)
            torch._check(places.shape[0] <= 3)
            return places

    program = compiled(Few(), (torch.tensor([1.0, 0, 1, 0, 0]),))
    assert program(torch.tensor([0.0, 1, 1, 1, 0])).tolist() == [[1], [2], [3]]
    expected = r"nonzero\.out failed at instruction 0: the result has other sizes than .* room"
    with pytest.raises(etx_runtime.ExecutionError, match=expected):
        program(torch.ones(5))


def test_state_is_kept(compiled):
    program = compiled(Counter(), (torch.ones(2),))
    assert [program(torch.ones(2)).tolist() for _ in range(3)] == [[2, 2], [4, 4], [6, 6]]


def test_control_flow(compiled):
    class Doubles(nn.Module):
        def forward(self, x):
            def more(x):
                return x.sum() < 100

            (x,) = torch.while_loop(more, lambda x: (x * 2,), (x,))
            return torch.cond(x[0] > 40, lambda x: x - 1, lambda x: x + 1, (x,))

    x = torch.tensor([1.0, 2.0])
    assert_close(compiled(Doubles(), (x,))(x), Doubles()(x))


def test_autograd_and_threads_are_left_alone(compiled):
    threads = torch.get_num_threads()
    weight = torch.ones(4, requires_grad=True)
    program = compiled(nn.Linear(4, 4), (torch.ones(2, 4),))
    y = program(torch.ones(2, 4))
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert not y.requires_grad
    (weight * y).sum().backward()
    assert torch.get_num_threads() == threads


def test_eight_threads(compiled):
    model = image_model()
    inputs = [torch.randn(2, 3, 32, 32) for _ in range(8)]
    program = pickle.dumps(compiled(model, (inputs[0],)).program)
    outputs = {}

    def run(i):
        own = etx_runtime.Model(pickle.loads(program), outputs="torch")
        for _ in range(5):
            outputs[i] = own(inputs[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(inputs):
        assert_close(outputs[i], model(x), rtol=1e-5, atol=1e-6)


def test_other_programs_have_the_kernels_they_had(compiled):
    compiled(nn.ReLU(), (torch.ones(2),))
    names = etx_runtime.Runtime.get().operator_registry.operator_names
    assert "aten::unique_consecutive.out" not in names
    with pytest.raises(etx_runtime.PluginError, match=r"no installed package offers kernels 'tpu'"):
        compiled(nn.ReLU(), (torch.ones(2),), "tpu")
