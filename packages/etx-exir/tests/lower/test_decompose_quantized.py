# SPDX-License-Identifier: BSD-3-Clause
"""Programs with torch's quantized operators run as eager does, on both targets."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from etx_exir import ExecutorchBackendConfig, to_edge
from torch import Tensor, nn

quantized = torch.ops.quantized_decomposed
INT8 = (-128, 127, torch.int8)


class PerTensor(nn.Module):
    """Activations quantized with the range that a tensor has when it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 16)

    def forward(self, x: Tensor) -> Tensor:
        scale, zero = quantized.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
        q = quantized.quantize_per_tensor.tensor(x, scale, zero, *INT8)
        return self.layer(quantized.dequantize_per_tensor.tensor(q, scale, zero, *INT8))


class PerGroup(nn.Module):
    """A weight of 4 bits with a scale for each group of each row."""

    values: Tensor
    scales: Tensor
    zeros: Tensor | None

    def __init__(self, group: int, zeros: bool) -> None:
        super().__init__()
        self.group = group
        self.register_buffer("values", torch.randint(-8, 8, (16, 64), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(16, 64 // group) + 0.1)
        drawn = torch.randint(-3, 3, (16, 64 // group)) if zeros else None
        self.register_buffer("zeros", drawn)

    def forward(self, x: Tensor) -> Tensor:
        weight = quantized.dequantize_per_channel_group(
            self.values, self.scales, self.zeros, -8, 7, torch.int8, self.group, torch.float32
        )
        return nn.functional.linear(x, weight)


MODELS = {
    "dynamic": PerTensor,
    "groups of 32": lambda: PerGroup(32, zeros=True),
    "one group, no zero points": lambda: PerGroup(64, zeros=False),
}


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("name", MODELS)
def test_runs_as_eager(name: str, target: str) -> None:
    torch.manual_seed(0)
    model, x = MODELS[name]().eval(), torch.randn(3, 64)
    program = torch.export.export(model, (x,))
    config = ExecutorchBackendConfig(target=target)
    buffer = to_edge(program).to_executorch(config).buffer
    got = torch.as_tensor(etx_runtime.load(buffer)(x))
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)
    assert len(buffer) < 16 * 64 * 4 + 8000
