# SPDX-License-Identifier: BSD-3-Clause
"""What the partitioner takes, Vela compiles: a few of the graphs that vela_sweep.py draws."""

from __future__ import annotations

import pytest
import torch
import vela_sweep
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.quantizer import TOSAQuantizer
from etx_quant import quantize
from lowered import delegates, lower
from test_forms import lowered
from torch import nn

COUNT = 6


@pytest.mark.parametrize("family", vela_sweep.FAMILIES)
def test_vela_compiles_what_is_taken(family: str) -> None:
    counted, named = vela_sweep.sweep(family, COUNT)
    assert counted["both"] > 0
    assert not {"only etx", "wrong"} & set(counted), named


@pytest.mark.parametrize(("stride", "delegated"), [((4, 1), 0), ((3, 1), 1)])
def test_gaps_and_strides_that_end_vela_stay_outside(
    stride: tuple[int, int], delegated: int
) -> None:
    module = nn.Conv2d(6, 6, 11, stride, 30, 3, groups=6).eval()
    batch = (torch.randn(3, 6, 20, 12),)
    model = quantize(module, [batch], TOSAQuantizer())
    partitioner = EthosUPartitioner(EthosUCompileSpec("ethos-u85-256"))
    program = lower(model, *batch, partitioner=partitioner)
    assert len(delegates(program)) == delegated
    left = [n for n in program.graph.nodes if n.target is torch.ops.aten.convolution.default]
    assert all(
        "a stride of [4, 1] with dilation [3, 3]; at most 3" in (partitioner.why_not(n) or "")
        for n in left
    )


def test_an_ethos_u85_takes_the_whole_profile() -> None:
    model, inputs, _ = lowered("bilinear_corners", "INT")
    for target, count in (("ethos-u55-128", 0), ("ethos-u85-256", 1)):
        partitioner = EthosUPartitioner(EthosUCompileSpec(target))
        assert len(delegates(lower(model, *inputs, partitioner=partitioner))) == count
