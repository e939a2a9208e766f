# SPDX-License-Identifier: BSD-3-Clause
"""A recurrent layer is one operator for target etx, in each direction, and steps for others."""

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, compile, to_edge, to_edge_transform_and_lower
from etx_exir.ir.recurrent import STEPS
from etx_schema import EtxError
from on_device import assert_same, export, on_device, operators
from torch import nn
from torch.export import Dim
from toy import ToyPartitioner

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")
torch.manual_seed(0)
X = torch.randn(7, 3, 4)
ONE = torch.randn(7, 1, 4)


def states(count, *widths):
    found = tuple(torch.randn(count, 3, width) for width in widths)
    return found if len(found) > 1 else found[0]


class Cells(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state = None
        for step in x:
            state = self.cell(step, state)
        return state


LAYERS = {  # the net, its inputs, and how many layers and directions it has
    "lstm": (nn.LSTM(4, 5), (X,), 1),
    "lstm, batch first": (nn.LSTM(4, 5, 3, batch_first=True), (X,), 3),
    "lstm, both ways": (nn.LSTM(4, 5, 2, bidirectional=True), (X,), 4),
    "lstm, both ways, batch first": (
        nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True),
        (X,),
        4,
    ),
    "lstm, projected": (nn.LSTM(4, 5, 2, proj_size=2), (X, states(2, 2, 5)), 2),
    "lstm, projected, no bias": (
        nn.LSTM(4, 5, bias=False, proj_size=3, bidirectional=True),
        (X,),
        2,
    ),
    "lstm, from a state": (nn.LSTM(4, 5, bidirectional=True), (X, states(2, 5, 5)), 2),
    "lstm, one sequence": (nn.LSTM(4, 5), (ONE,), 1),
    "lstm, not batched": (nn.LSTM(4, 5), (X[:, 0],), 1),
    "lstm, dropout": (nn.LSTM(4, 5, 2, dropout=0.4), (X,), 2),
    "gru": (nn.GRU(4, 5, 2), (X, states(2, 5)), 2),
    "gru, both ways": (nn.GRU(4, 5, bidirectional=True, batch_first=True), (X,), 2),
    "gru, no bias": (nn.GRU(4, 5, bias=False), (ONE,), 1),
    "lstm, a cell": (nn.LSTMCell(4, 5), (X[0], tuple(x[0] for x in states(1, 5, 5))), 1),
    "lstm, cells": (Cells(nn.LSTMCell(4, 5)), (X,), 7),
    "gru, a cell": (nn.GRUCell(4, 5, bias=False), (X[0],), 1),
    "rnn, a cell": (nn.RNNCell(4, 5), (X[0, 0],), 1),
    "rnn, a cell, relu": (nn.RNNCell(4, 5, nonlinearity="relu"), (X[0], states(1, 5)[0]), 1),
    "rnn": (nn.RNN(4, 5, 2, bidirectional=True), (X, states(4, 5)), 4),
    "rnn, relu": (nn.RNN(4, 5, nonlinearity="relu", batch_first=True, bias=False), (X,), 1),
}
OWN = {f"etx::{name}.out" for name in ("lstm", "gru", "rnn")}
STEPWISE = ExecutorchBackendConfig(target="executorch")


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5)
        self.weight = nn.Buffer(torch.randint(-9, 9, (20, 4), dtype=torch.int8))

    def forward(self, x):
        names = dict(self.lstm.named_parameters())
        names["weight_ih_l0"] = self.weight * 0.1
        return torch.func.functional_call(self.lstm, names, (x,))


LEFT = {
    "float64": (nn.LSTM(4, 5).double(), (X.double(),)),
    "a computed weight": (Quantized(), (X,)),
}


def own(buffer):
    return [name for name in operators(buffer) if name in OWN]


@pytest.mark.parametrize("case", LAYERS)
def test_is_one_operator(case):
    module, inputs, count = LAYERS[case]
    edge = to_edge(export(module, inputs))
    ours, theirs = edge.to_executorch(), edge.to_executorch(STEPWISE)
    assert len(own(ours.buffer)) == count
    assert not {"aten::linear.out", "aten::sigmoid.out"} & set(operators(ours.buffer))
    assert not own(theirs.buffer)
    with torch.no_grad():
        expected = module.eval()(*inputs)
        assert_same(_array(edge.exported_program().module()(*inputs)), expected)
    for manager in (ours, theirs):
        assert_same(etx_runtime.load(manager.buffer)(*on_device(inputs)), expected)


def _array(results):
    return torch.utils._pytree.tree_map(torch.Tensor.numpy, results)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves_are_summed_in_float32(dtype):
    module = nn.LSTM(4, 5, 2).eval().to(dtype)
    buffer = to_edge(export(module, (X.to(dtype),))).to_executorch().buffer
    assert len(own(buffer)) == 2
    method = etx_runtime.Runtime.get().load_program(buffer).load_method("forward")
    got = torch.utils._pytree.tree_leaves(method.execute([X.to(dtype)]))
    exact = torch.utils._pytree.tree_leaves(module.double()(X.to(dtype).double()))
    for result, expected in zip(got, exact, strict=True):
        found = torch.as_tensor(result).double()
        torch.testing.assert_close(found, expected, rtol=0, atol=2 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("case", LEFT)
def test_is_left(case):
    module, inputs = LEFT[case]
    buffer = to_edge(export(module, inputs)).to_executorch().buffer
    assert not own(buffer)
    assert_same(etx_runtime.load(buffer)(*on_device(inputs)), module.eval()(*inputs))


def test_a_backend_sees_the_steps():
    program = export(nn.LSTM(4, 5), (X,))
    taken = to_edge_transform_and_lower(program, partitioner=[ToyPartitioner()])
    later = to_edge(program).to_backend(ToyPartitioner())
    for manager in (taken, later):
        targets = {node.target for node in manager.exported_program().graph.nodes}
        assert not targets & STEPS.keys()


def test_without_a_target_there_are_steps():
    edge = to_edge(export(nn.GRU(4, 5), (X,)))
    assert not own(edge.to_executorch(ExecutorchBackendConfig(target=None)).buffer)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch_first", [False, True])
def test_batch_and_length_may_change(kind, batch_first):
    module = kind(4, 5, 2, bidirectional=True, batch_first=batch_first).eval()
    dims = ({0: Dim("first", max=9), 1: Dim("second", max=40)},)
    buffer = compile(module, (X,), dynamic_shapes=dims).buffer
    assert len(own(buffer)) == 4
    model = etx_runtime.load(buffer)
    for first, second in ((7, 3), (1, 1), (9, 40)):
        x = torch.randn(first, second, 4)
        assert_same(model(x.numpy()), module(x))


def test_a_long_sequence_is_no_longer_file():
    module = nn.LSTM(4, 5)
    sizes = [len(compile(module, (torch.randn(n, 1, 4),)).buffer) for n in (2, 30)]
    assert sizes[1] - sizes[0] < 64


def test_a_state_goes_from_call_to_call():
    module = nn.GRU(4, 5).eval()
    program = export(module, (X[:1], states(1, 5)))
    model = etx_runtime.load(to_edge(program).to_executorch().buffer)
    whole, last = module(X)
    state, parts = np.zeros((1, 3, 5), np.float32), []
    for step in X.split(1):
        part, state = model(step.numpy(), state)
        parts.append(part)
    assert_same(np.concatenate(parts), whole)
    assert_same(state, last)


@pytest.mark.parametrize("case", ["executorch", "float64", "backend"])
def test_steps_of_any_number_are_refused(case):
    module, x = nn.LSTM(4, 5), X
    if case == "float64":
        module, x = module.double(), X.double()
    with pytest.raises(EtxError, match="length of its sequences must be fixed"):
        compile(
            module,
            (x,),
            dynamic_shapes=({0: Dim("length", max=40)},),
            partitioner=[ToyPartitioner()] if case == "backend" else None,
            config=STEPWISE if case == "executorch" else None,
        )
