# SPDX-License-Identifier: BSD-3-Clause
"""Attention of float16 and bfloat16 is one operator, which reads them as they lie."""

import etx_runtime
import pytest
import torch
from etx_exir import to_edge
from on_device import export, operators
from torch.nn import functional as F

torch.manual_seed(0)
B, H, M, L, E = 2, 4, 6, 9, 8
Q, K, V = torch.randn(B, H, M, E), torch.randn(B, H, L, E), torch.randn(B, H, L, E)
SHARED = torch.randn(B, 2, L, E)
ADDED, SEEN = torch.randn(B, 1, 1, L), torch.rand(B, 1, M, L) > 0.4
attention = F.scaled_dot_product_attention
NAME = "etx::attention.out"
HALVES = {
    "plain": (attention, (Q, K, V)),
    "added": (attention, (Q, K, V, ADDED)),
    "seen": (attention, (Q, K, V, SEEN[:1] | (torch.arange(L) == 0))),
    "shared": (lambda *x: attention(*x, enable_gqa=True), (Q, SHARED, SHARED)),
    "one row": (attention, (Q[:, :, :1], K, V, ADDED)),
    "twenty rows": (lambda q, k, v: attention(q.repeat(1, 1, 4, 1), k, v), (Q, K, V)),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", HALVES)
def test_of_half_precision_is_one_operator(case, dtype):
    function, inputs = HALVES[case]
    inputs = tuple(x if x.dtype is torch.bool else x.to(dtype) for x in inputs)
    buffer = to_edge(export(function, inputs)).to_executorch().buffer
    copies = [name for name in operators(buffer) if "_to_dim_order_copy" in name]
    assert operators(buffer).count(NAME) == 1
    assert len(copies) == (inputs[-1].shape == ADDED.shape)  # of the mask
    method = etx_runtime.Runtime.get().load_program(buffer).load_method("forward")
    (got,) = method.execute(list(inputs))
    exact = function(*(x if x.dtype is torch.bool else x.double() for x in inputs))
    found = torch.as_tensor(got).double()
    torch.testing.assert_close(found, exact, rtol=0, atol=2 * torch.finfo(dtype).eps)
