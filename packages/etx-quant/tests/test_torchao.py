# SPDX-License-Identifier: BSD-3-Clause
"""Models that torchao's own configurations quantize compile, run and stay small."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_exir import compile
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    PerGroup,
    quantize_,
)

CONFIGS = {
    "int8 weights": Int8WeightOnlyConfig(),
    "int4 weights": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
    "8da4w": Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    ),
    "8da8w": Int8DynamicActivationInt8WeightConfig(),
}
BYTES = 128 * 192 + 192 * 64
SCALES = 4 * (BYTES // 32 + 192 + 64) * 2
PROGRAM = 20_000


@pytest.mark.parametrize("name", CONFIGS)
def test_compiles_and_runs(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 192), nn.SiLU(), nn.Linear(192, 64)).eval()
    x = torch.randn(20, 128)
    quantize_(model, CONFIGS[name])
    with torch.no_grad():
        expected = model(x)
        buffer = compile(torch.export.export(model, (x,))).buffer
    got = torch.as_tensor(etx_runtime.load(buffer)(x))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert len(buffer) < BYTES + SCALES + PROGRAM
