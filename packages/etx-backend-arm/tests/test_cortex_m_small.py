# SPDX-License-Identifier: BSD-3-Clause
"""Each operator of a quantized network is one of `cortex_m::`, and computes what torch does."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.cortex_m import operators as ops
from etx_exir import ExecutorchBackendConfig
from small_networks import NETWORKS, lowered


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
