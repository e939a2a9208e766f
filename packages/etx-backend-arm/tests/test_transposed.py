# SPDX-License-Identifier: BSD-3-Clause
"""Transposed convolutions in groups, and of int16: one delegate each."""

from __future__ import annotations

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner, EthosUQuantizer
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.quantizer import get_symmetric_a16w8_quantization_config
from etx_quant import quantize
from lowered import delegates, lower
from test_filled import check
from torch import nn

CASES = [
    nn.ConvTranspose2d(4, 6, 3, 2, 1, 1),
    nn.ConvTranspose2d(4, 6, 3, padding=1, groups=2),
    nn.ConvTranspose2d(4, 4, (2, 3), (2, 1), groups=4, bias=False),
    nn.ConvTranspose2d(4, 8, 3, 2, groups=4),
]
SPECS = ("TOSA-1.0+FP", "TOSA-1.0+INT", "TOSA-1.0+INT+int16")


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("index", range(len(CASES)))
def test_groups(index: int, spec: str) -> None:
    torch.manual_seed(0)
    layer = CASES[index].eval()
    nn.init.normal_(layer.weight)
    check(layer, TosaCompileSpec(spec), torch.randn(2, 4, 5, 6), steps=1)


@pytest.mark.parametrize(("index", "is_wide"), [(0, True), (1, False), (3, False)])
def test_what_an_npu_has_not_stays_outside(index: int, is_wide: bool) -> None:
    spec = EthosUCompileSpec("ethos-u55-128")
    quantizer = EthosUQuantizer(spec)
    if is_wide:
        quantizer.set_global(get_symmetric_a16w8_quantization_config())
    x = torch.randn(1, 4, 5, 6)
    model = quantize(CASES[index].eval(), [(x,)], quantizer)
    assert not delegates(lower(model, x, partitioner=EthosUPartitioner(spec)))
