# SPDX-License-Identifier: BSD-3-Clause
"""Each operator of a quantized network is one of `cortex_m::`, and computes what torch does."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.cortex_m import operators as ops
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from small_networks import NETWORKS, Function, lowered
from torch import Tensor, nn
from torch.nn import functional as F


@pytest.mark.parametrize("name", NETWORKS)
def test_small_networks_are_integers(name: str) -> None:
    edge, model, x = lowered(name)
    program = edge.exported_program()
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert NETWORKS[name].operator in {n.target for n in calls}
    assert not [n for n in calls if str(n.target).startswith(("etx.", "quantized_"))]
    floats = [n for n in calls if n.meta["val"].dtype == torch.float32]
    (last,) = floats
    assert last.target is ops.DEQUANTIZE
    runtime = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    actual = np.asarray(runtime(x.numpy()))
    np.testing.assert_array_equal(actual, program.module()(x).numpy())
    atol = (NETWORKS[name].steps + 0.01) * float(last.args[1])
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=0, atol=atol)


class Alone(nn.Module):
    """A function of a model's input."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.function(x)
        return result


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: F.pad(x, (1, 2, 3, 1)), ops.PAD),
        (lambda x: F.max_pool2d(x, 2), ops.MAX_POOL2D),
        (lambda x: F.avg_pool2d(x, 2), ops.AVG_POOL2D),
        (lambda x: torch.maximum(x, x.flip(1)), ops.MAXIMUM),
        (lambda x: torch.minimum(x, x.flip(1)), ops.MINIMUM),
        (lambda x: x.permute(0, 2, 3, 1).contiguous(), ops.TRANSPOSE),
    ],
    ids=["pad", "max_pool2d", "avg_pool2d", "maximum", "minimum", "transpose"],
)
def test_what_moves_or_pools_an_input_is_integer(function: Function, operator: object) -> None:
    torch.manual_seed(0)
    inputs = [(torch.randn(1, 4, 8, 8),) for _ in range(4)]
    model = quantize(Alone(function).eval(), inputs, CortexMQuantizer())
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, inputs[0])))
    program = edge.exported_program()
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    assert operator in {n.target for n in calls}
    (last,) = (n for n in calls if n.meta["val"].dtype == torch.float32)
    assert last.target is ops.DEQUANTIZE
    runtime = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    actual = np.asarray(runtime(inputs[0][0].numpy()))
    expected = model(*inputs[0]).detach().numpy()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1.01 * float(last.args[1]))
