# SPDX-License-Identifier: BSD-3-Clause
"""A pool whose indices nothing reads makes none for target etx."""

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, to_edge
from on_device import assert_same, export, on_device, operators
from torch.nn import functional as F

torch.manual_seed(0)
X = torch.randn(2, 3, 11, 9)
X[0, 0, 2, 3], X[0, 1, :4, :4] = torch.nan, -torch.inf
ALONE, BOTH = "etx::max_pool2d.out", "aten::max_pool2d_with_indices.out"
POOLS = {
    "plain": lambda x: F.max_pool2d(x, 2),
    "of three": lambda x: F.max_pool2d(x, 3, 2, 1),
    "wide": lambda x: F.max_pool2d(x, 5, 1, 2),
    "rectangular": lambda x: F.max_pool2d(x, (4, 1), (1, 3), (2, 0)),
    "of one": lambda x: F.max_pool2d(x, 1, 2),
    "dilated": lambda x: F.max_pool2d(x, 2, 1, 0, 3),
    "to the end": lambda x: F.max_pool2d(x, 2, 2, 0, 1, ceil_mode=True),
    "one image": lambda x: F.max_pool2d(x[0], 2),
}


@pytest.mark.parametrize("case", POOLS)
def test_there_are_no_indices(case):
    edge = to_edge(export(POOLS[case], (X,)))
    theirs = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    ours = edge.to_executorch()
    assert ALONE in operators(ours.buffer)
    assert BOTH not in operators(ours.buffer)
    assert BOTH in operators(theirs.buffer)
    for manager in (ours, theirs):
        assert_same(etx_runtime.load(manager.buffer)(*on_device((X,))), POOLS[case](X))


def test_read_indices_stay():
    def pool(x):
        return F.max_pool2d(x, 2, return_indices=True)

    buffer = to_edge(export(pool, (X,))).to_executorch().buffer
    assert operators(buffer) == [BOTH]
    assert_same(etx_runtime.load(buffer)(*on_device((X,))), pool(X))


def test_they_take_no_memory():
    x = torch.randn(1, 8, 64, 64)
    edge = to_edge(export(lambda x: F.max_pool2d(x.relu(), 2).relu(), (x,)))
    ours = edge.to_executorch()
    theirs = edge.to_executorch(ExecutorchBackendConfig(target="executorch"))
    bytes_of = [
        sum(
            etx_runtime.Runtime.get()
            .load_program(m.buffer)
            .method_meta("forward")
            .memory_planned_buffer_sizes()
        )
        for m in (ours, theirs)
    ]
    assert bytes_of[0] <= bytes_of[1] - 8 * 32 * 32 * 8
