# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that end a call with one value: torch's decomposition keeps only the last of them."""

from __future__ import annotations

import copy
import itertools

import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, MemoryPlanningPass, compile
from etx_exir.errors import LoweringError
from etx_exir.lower.decompose import decompose
from etx_exir.lower.unalias_loops import unalias_writes
from torch import nn

VALUES = {
    "computed": lambda net, x: x * 2,
    "input": lambda net, x: x,
    "buffer": lambda net, x: net.kept,
    "part": lambda net, x: torch.cat([x, x])[:4],
}


def assign(net, name, value):
    setattr(net, name, value)


WRITES = {
    "copy_": lambda net, name, value: getattr(net, name).copy_(value),
    "whole slice": lambda net, name, value: getattr(net, name).__setitem__(slice(None), value),
    "part": lambda net, name, value: getattr(net, name)[:2].copy_(value[:2]),
}
PAIRS = [*itertools.product(WRITES.values(), repeat=2), (assign, assign)]
RETURNS = {
    "old values": lambda old, value, net: old,
    "value": lambda old, value, net: value,
    "value, then old values": lambda old, value, net: (value + 0, value, old),
    "new values": lambda old, value, net: (net.a + net.b, net.b[1:]),
}


class Net(nn.Module):
    def __init__(self, value, first, second, result):
        super().__init__()
        for name in ("a", "b", "kept"):
            self.register_buffer(name, torch.randn(4, 3))
        self.value, self.first, self.second, self.result = value, first, second, result

    def forward(self, x):
        old = self.a.exp() - self.b
        value = self.value(self, x)
        self.first(self, "a", value)
        self.second(self, "b", self.a)
        return self.result(old, value, self)


@pytest.mark.parametrize("target", ["etx", "executorch"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("result", RETURNS)
def test_both_are_written(value, result, target):
    config = ExecutorchBackendConfig(target=target)
    for first, second in PAIRS:
        if first is assign and value != "computed":
            continue
        net = Net(VALUES[value], first, second, RETURNS[result])
        file = compile(copy.deepcopy(net), (torch.randn(4, 3),), config=config).buffer
        model = etx_runtime.load(file, outputs="torch")
        for _ in range(3):
            x = torch.randn(4, 3)
            expected, got = net(x.clone()), model(x.clone())
            torch.testing.assert_close(got, expected)


def test_an_input_and_a_buffer_are_written():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(3))

        def forward(self, x):
            old = self.state + 1
            self.state.add_(x)
            x.copy_(self.state)
            return old

    config = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False)
    )
    file = compile(Net(), (torch.ones(3),), config=config).buffer
    model, eager = etx_runtime.load(file, outputs="torch"), Net()
    for _ in range(3):
        x, given = torch.full((3,), 2.0), torch.full((3,), 2.0)
        torch.testing.assert_close(model(given), eager(x))
        torch.testing.assert_close(given, x)


def test_a_program_that_lost_a_write_is_refused():
    program = torch.export.export(
        Net(VALUES["computed"], WRITES["copy_"], WRITES["copy_"], RETURNS["old values"]),
        (torch.randn(4, 3),),
    )
    program = decompose(unalias_writes(program))
    specs = program.graph_signature.output_specs
    del specs[0]
    with pytest.raises(LoweringError, match="lost a write"):
        compile(program)
