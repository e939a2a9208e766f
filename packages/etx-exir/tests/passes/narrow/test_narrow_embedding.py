# SPDX-License-Identifier: BSD-3-Clause
"""Embeddings in bf16: rows are those of the weight, rounded."""

import etx_runtime
import numpy as np
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from on_device import export
from torch import nn

torch.manual_seed(0)


def test_rows_are_the_rounded_ones():
    module, tokens = nn.Embedding(50, 12), torch.tensor([[3, 49], [0, 3]])
    edge = to_edge(export(module, (tokens,)))
    result = edge.to_executorch(ExecutorchBackendConfig(precision="bf16"))
    got = np.asarray(etx_runtime.load(result.buffer)(tokens.numpy()))
    expected = module(tokens).detach().bfloat16().float().numpy()
    assert got.dtype == np.float32
    assert np.array_equal(got, expected)
    assert len(result.buffer) < len(edge.to_executorch().buffer) - 50 * 12
