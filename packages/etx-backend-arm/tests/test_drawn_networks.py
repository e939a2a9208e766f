# SPDX-License-Identifier: BSD-3-Clause
"""Whole networks, drawn: all integers until the last operator, and the numbers of torch's model."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from drawn_networks import lowered
from etx_exir import ExecutorchBackendConfig


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_a_drawn_network_is_integers(seed: int) -> None:
    edge, model, x = lowered(seed)
    program = edge.exported_program()
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    (last,) = (n for n in calls if n.meta["val"].dtype == torch.float32)
    runtime = etx_runtime.load(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)
    actual = np.asarray(runtime(x.numpy()))
    np.testing.assert_array_equal(actual, program.module()(x).numpy())
    atol = 1.01 * float(last.args[1])
    np.testing.assert_allclose(actual, model(x).detach().numpy(), rtol=0, atol=atol)
