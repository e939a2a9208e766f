# SPDX-License-Identifier: BSD-3-Clause
"""Sums of sums, with factors and scales far apart: int32 in between, one delegate."""

from __future__ import annotations

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.quantizer import TOSAQuantizer, get_symmetric_a16w8_quantization_config
from etx_quant import quantize
from lowered import delegates, interpreted, lower
from torch import Tensor, nn

FACTORS = [(1, 1), (1, 1.5), (2, 1), (-0.5, 3), (0.25, -1), (1, -20.0)]


class Sums(nn.Module):
    def __init__(self, first: float, second: float) -> None:
        super().__init__()
        self.factors = first, second

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return torch.add(torch.sub(x, y, alpha=self.factors[0]), z, alpha=self.factors[1])


@pytest.mark.parametrize("extension", ["", "+int16"])
@pytest.mark.parametrize("largest", [0.01, 0.3, 0.8, 1, 5, 300])
@pytest.mark.parametrize("factors", FACTORS, ids=str)
def test_results_are_two_steps_apart(
    factors: tuple[float, float], largest: float, extension: str
) -> None:
    """RESCALE must not be asked for more than its multiplier and shift can say.

    The first sum is not rounded, where the model rounds it.
    """
    torch.manual_seed(0)
    inputs = [size * torch.rand(2, 5, 6) for size in (0.1, 0.2, largest)]
    spec = TosaCompileSpec(f"TOSA-1.0+INT{extension}")
    quantizer = TOSAQuantizer(spec)
    if extension:
        quantizer.set_global(get_symmetric_a16w8_quantization_config())
    model = quantize(Sums(*factors), [tuple(inputs)], quantizer)
    program = lower(model, *inputs, partitioner=TOSAPartitioner(spec))
    assert len(delegates(program)) == 1
    (actual,), expected = interpreted(program, *inputs), model(*inputs)
    reach = float(expected.max() - expected.min()) / 255
    step = float(expected.abs().max()) / (2**15 - 1) if extension else reach
    assert float((actual - expected).abs().max()) <= 2.01 * step
