# SPDX-License-Identifier: BSD-3-Clause
"""Products with transposed matrices read rows as they lie for target etx."""

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from on_device import assert_same, export, on_device, operators

torch.manual_seed(0)
ROWS, TURN = "etx::bmm_nt.out", "aten::permute_copy.out"
Q, K = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
TOKENS = torch.randn(2, 7, 3, 8)
ALL = {
    "heads": (lambda q, k: q @ k.transpose(-1, -2), (Q, K), 0),
    "batch": (lambda q, k: torch.bmm(q, k.mT), (Q[0], K[0]), 0),
    "scaled": (lambda q, k: q @ (k * 0.5).mT, (Q, K), 0),
    "of halves": (lambda q, k: q @ k.mT, (Q.half(), K.half()), 0),
    "of integers": (lambda q, k: q @ k.mT, (Q.mul(3).int(), K.mul(3).int()), 0),
    "einsum": (lambda q, k: torch.einsum("bhmk,bhnk->bhmn", q, k), (Q, K), 0),
    "tokens first": (lambda q, k: q @ k.permute(0, 2, 3, 1), (Q, TOKENS), 1),
    "one head": (lambda q, k: q @ k.permute(0, 2, 3, 1), (Q[:, :1], TOKENS[:, :, :1].clone()), 0),
}


@pytest.mark.parametrize("case", ALL)
def test_nothing_is_turned(case):
    function, inputs, moved = ALL[case]
    edge = to_edge(export(function, inputs))
    theirs = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    ours = edge.to_executorch()
    assert operators(ours.buffer).count(ROWS) == 1
    assert operators(ours.buffer).count(TURN) == moved
    assert ROWS not in operators(theirs.buffer)
    for manager in (ours, theirs):
        assert_same(etx_runtime.load(manager.buffer)(*on_device(inputs)), function(*inputs))


def test_of_any_length():
    length = torch.export.Dim("length", min=1, max=64)
    dynamic = ({}, {2: length})
    program = torch.export.export(Module(), (Q, K), dynamic_shapes=dynamic)
    buffer = to_edge(program).to_executorch().buffer
    assert ROWS in operators(buffer)
    for count in (1, 7, 64):
        k = torch.randn(2, 3, count, 8)
        assert_same(etx_runtime.load(buffer)(*on_device((Q, k))), Module()(Q, k))


class Module(torch.nn.Module):
    def forward(self, q, k):
        return q @ k.transpose(-1, -2)


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k: (q @ k.mT, k.mT * 2),
        lambda q, k: q @ k.permute(2, 3, 0, 1).permute(2, 3, 1, 0)[:, :, :8, :5],
        lambda q, k: q.mT @ q,
    ],
    ids=["read by others", "of a part", "of the first operand"],
)
def test_others_stay(function):
    inputs = (torch.randn(2, 3, 5, 8), torch.randn(2, 3, 8, 8))
    buffer = to_edge(export(function, inputs)).to_executorch().buffer
    assert ROWS not in operators(buffer)
    assert_same(etx_runtime.load(buffer)(*on_device(inputs)), function(*inputs))
