# SPDX-License-Identifier: BSD-3-Clause
"""Both families of `cortex_m::` compute the same, on images of either order in memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.cortex_m import (
    CortexM,
    CortexMQuantizer,
    CortexMTargetConfig,
    lower_to_cortex_m,
    passes_for,
)
from etx_backend_arm.cortex_m import operators as ops
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import get_symmetric_quantization_config, quantize
from torch import Tensor, nn
from torch.nn import functional

M4, M55 = CortexMTargetConfig(CortexM.M4), CortexMTargetConfig(CortexM.M55)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
        self.b = nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.sigmoid(self.a(x))
        return y + self.b(y) * y


class Uneven(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(self.conv(functional.pad(x, (0, 1, 2, 3))), (1, 0, 2, 1))


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(4, 8, 3), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(functional.relu(self.conv(x)).mean((2, 3)))


class Joined(nn.Module):
    """What reads images otherwise: a joint, a view, a permutation."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 3, 1), nn.Conv2d(7, 2, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.b(torch.cat([self.a(x), x], 1))
        return y.flatten(1), y.permute(0, 2, 3, 1)


NETS = {
    "conv": lambda: nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 3)),
    "residual": Residual,
    "pools": lambda: nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.AvgPool2d(2, padding=1)),
    "transposed": lambda: nn.Sequential(
        nn.Conv2d(4, 6, 3), nn.ConvTranspose2d(6, 4, 3, 2, 1, 1), nn.Conv2d(4, 1, 1)
    ),
    "one_channel": lambda: nn.Sequential(nn.Conv2d(4, 1, 1), nn.Conv2d(1, 3, 3), nn.MaxPool2d(2)),
    "uneven": Uneven,
    "mean": Mean,
    "joined": Joined,
}


NO_IMAGES = {"joined": 1, "mean": 1}
"""Convolutions of what is not an image of one: a joint, rows of a linear layer."""


def lowered(edge: Any, config: CortexMTargetConfig, is_explicit: bool) -> Any:
    return edge.transform(passes_for(config, is_explicit=is_explicit))


def run(edge: Any, x: Tensor) -> list[np.ndarray]:
    program = edge.to_executorch(ExecutorchBackendConfig(target=None))
    found = etx_runtime.load(program.buffer)(x)
    return [np.asarray(each) for each in (found if isinstance(found, (list, tuple)) else [found])]


def calls(edge: Any) -> Counter[Any]:
    return Counter(n.target for n in edge.exported_program().graph.nodes)


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", NETS)
def test_both_families_compute_the_same(name: str, order: torch.memory_format) -> None:
    torch.manual_seed(0)
    net = NETS[name]().eval()
    samples = [(torch.randn(2, 4, 9, 8).to(memory_format=order),) for _ in range(4)]
    model = quantize(net, samples, CortexMQuantizer())
    edge = to_edge(torch.export.export(model, samples[0]))
    explicit, given = lowered(edge, M55, True), lowered(edge, M55, False)
    found = calls(given)
    left = sum(found[op] for op in ops.BY_DIM_ORDER)
    made = sum(found[op] for op in ops.BY_DIM_ORDER.values())
    assert left <= NO_IMAGES.get(name, 0)
    assert left + made == sum(calls(explicit)[op] for op in ops.BY_DIM_ORDER)
    expected = model(*samples[1])
    for a, b, c in zip(
        run(given, samples[1][0]),
        run(explicit, samples[1][0]),
        expected if isinstance(expected, (list, tuple)) else [expected],
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
        assert a.shape == c.shape
        assert np.abs(a - c.numpy()).max() < 0.05


def test_images_that_have_channels_last_are_not_copied() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 4, 9, 8).to(memory_format=torch.channels_last)
    model = quantize(NETS["conv"]().eval(), [(x,)], CortexMQuantizer())
    found = calls(lowered(to_edge(torch.export.export(model, (x,))), M55, False))
    assert found[ops.BY_DIM_ORDER[ops.CONV2D]] == 2
    made = sum(
        count for target, count in found.items() if isinstance(target, torch._ops.OpOverload)
    )
    assert made == 4  # quantize, two convolutions, dequantize


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_matrix_has_sums_or_a_bias(has_bias: bool) -> None:
    torch.manual_seed(0)
    quantizer = CortexMQuantizer()
    quantizer.set_global(get_symmetric_quantization_config())
    samples = [(torch.rand(3, 40) + 2,) for _ in range(4)]
    model = quantize(nn.Linear(40, 6, bias=has_bias).eval(), samples, quantizer)
    edge = to_edge(torch.export.export(model, samples[0]))
    results = []
    for config in (M55, M4):
        given = lowered(edge, config, False)
        (call,) = given.exported_program().graph.find_nodes(op="call_function", target=ops.LINEAR)
        bias, sums = call.args[2:4]
        assert (sums is not None) == (config is M55)
        assert (bias is not None) == (config is M4 and has_bias)
        results += run(given, samples[1][0])
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], model(*samples[1]).numpy(), atol=0.03)


def test_a_padding_of_an_image_with_channels_last() -> None:
    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return functional.pad(x, (1, 2, 3, 4))

    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    model = quantize(Padded().eval(), [(x,)], CortexMQuantizer())
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, (x,))))
    assert calls(edge)[ops.PAD] == 1
    (found,) = run(edge, x)
    np.testing.assert_array_equal(found, model(x).numpy())
