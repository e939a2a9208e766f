# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent layers are the operators of their steps: in float the same numbers, then integers."""

from __future__ import annotations

from typing import Any

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.cortex_m.recurrent import FORMS, MOST_STEPS, unroll
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attribute:UserWarning")  # torch.export
INPUT, SIZE, STEPS, BATCH = 5, 4, 3, 2
LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bidirectional": True, "num_layers": 2},
    {"batch_first": True, "bias": False, "num_layers": 2},
    {"batch_first": True, "bidirectional": True},
]


class Given(nn.Module):
    """A layer or cell with states that the caller gives."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, *states: Tensor) -> Any:
        return self.layer(x, states if len(states) > 1 else states[0])


def check_unrolled(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """The rewritten graph has no recurrent operator, and returns what eager does."""
    module = torch.export.export(model.eval(), inputs).module(check_guards=False)
    unroll(module, lambda node: True)
    assert not {n.target for n in module.graph.nodes}.intersection(FORMS)
    torch.testing.assert_close(module(*inputs), model(*inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_return_what_eager_does(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer = LAYERS[kind](INPUT, SIZE, **options)
    x = torch.randn(STEPS, BATCH, INPUT)
    check_unrolled(layer, (x,))
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    batch = x.shape[0 if layer.batch_first else 1]
    states = [torch.randn(count, batch, SIZE) for _ in range(2 if kind == "lstm" else 1)]
    check_unrolled(Given(layer), (x, *states))


@pytest.mark.parametrize(
    "cell",
    [nn.LSTMCell, nn.GRUCell, nn.RNNCell, lambda i, s: nn.RNNCell(i, s, nonlinearity="relu")],
    ids=["lstm", "gru", "tanh", "relu"],
)
def test_cells_return_what_eager_does(cell: Any) -> None:
    torch.manual_seed(0)
    layer, x = cell(INPUT, SIZE), torch.randn(BATCH, INPUT)
    check_unrolled(layer, (x,))
    states = [torch.randn(BATCH, SIZE) for _ in range(2 if isinstance(layer, nn.LSTMCell) else 1)]
    check_unrolled(Given(layer), (x, *states))


class Words(nn.Module):
    """An LSTM and a layer on its last state."""

    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.layer, self.head = nn.LSTM(16, size, batch_first=True), nn.Linear(size, 4)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.layer(x)
        rows: Tensor = self.head(states[:, -1])
        return rows


def test_an_lstm_is_integers_and_its_weights_are_stored_once() -> None:
    torch.manual_seed(0)
    steps = 4
    net, inputs = Words().eval(), [(torch.randn(1, steps, 16),) for _ in range(8)]
    model = quantize(net, inputs, CortexMQuantizer())
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, inputs[0])))
    floats = [n for n in edge.exported_program().graph.nodes if n.op == "call_function"]
    floats = [n for n in floats if n.meta["val"].dtype == torch.float32]
    assert len(floats) == 1
    matrices = {
        bytes(value.numpy().tobytes())
        for value in edge.exported_program().constants.values()
        if value.shape == (4 * 32, 1, 1, 32)
    }
    program = edge.to_executorch(ExecutorchBackendConfig(target=None))
    assert [program.buffer.count(matrix) for matrix in matrices] == [1]
    runtime = etx_runtime.load(program.buffer)
    step = float(floats[0].args[1])
    for (x,) in inputs:
        actual, exact = np.asarray(runtime(x.numpy())), model(x).detach().numpy()
        np.testing.assert_allclose(actual, exact, rtol=0, atol=1.01 * step)


def test_long_sequences_keep_float_states() -> None:
    module = torch.export.export(nn.LSTM(2, 2).eval(), (torch.zeros(MOST_STEPS + 1, 1, 2),)).module(
        check_guards=False
    )
    unroll(module, lambda node: True)
    assert torch.ops.aten.lstm.input in {n.target for n in module.graph.nodes}
