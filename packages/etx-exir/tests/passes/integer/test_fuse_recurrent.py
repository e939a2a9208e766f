# SPDX-License-Identifier: BSD-3-Clause
import etx_runtime
import pytest
import torch
from etx_exir import ExecutorchBackendConfig, compile, to_edge
from etx_exir.ir.provenance import DECLINED
from on_device import assert_same, export, on_device, operators
from quantized_programs import Weight, by_token
from torch import nn
from torch.export import Dim

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections", "ignore:The tensor attrib")
X = torch.randn(7, 3, 32, generator=torch.Generator().manual_seed(0))
STATE = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(1))
STEPWISE = ExecutorchBackendConfig(target="executorch")


class Grouped(nn.Module):
    """An int4 weight with a scale for each group of 8 inputs."""

    def __init__(self, rows, columns):
        super().__init__()
        self.shape, self.groups = (rows, columns), Weight(rows * columns // 8, 8, bits=4)

    def forward(self):
        return self.groups().view(self.shape)


def int4(rows, columns):
    return Weight(rows, columns, bits=4)


def one_scale(rows, columns):
    return Weight(rows, columns, axis=None)


def by_input(rows, columns):
    return Weight(rows, columns, axis=1)


class Quantized(nn.Module):
    """A recurrent net whose matrices are those of `make`; where `enter` is given, of its rows.

    They are so small that a step makes differences of a state smaller, not larger.
    """

    def __init__(self, net, make=Weight, enter=None, only=""):
        super().__init__()
        self.net, self.enter = net, enter
        shapes = {n: p.shape for n, p in net.named_parameters() if p.dim() == 2 and only in n}
        self.weights = nn.ModuleDict({name: make(*shape) for name, shape in shapes.items()})
        for weight in self.weights.modules():
            if isinstance(weight, Weight):
                weight.scales *= 0.1
                weight.scale *= 0.1

    def forward(self, x, *state):
        tensors = dict(self.net.named_parameters())
        tensors |= {name: weight() for name, weight in self.weights.items()}
        rows = x if self.enter is None else self.enter(x)
        return torch.func.functional_call(self.net, tensors, (rows, *state))


NETS = {  # the net, its states, the operator, and how often
    "lstm": (nn.LSTM(32, 16, 2), (), "lstm", 2),
    "lstm, from a state": (nn.LSTM(32, 16, bidirectional=True), ((STATE, STATE),), "lstm", 2),
    "lstm, batch first, no bias": (nn.LSTM(32, 16, bias=False, batch_first=True), (), "lstm", 1),
    "lstm, odd sizes": (nn.LSTM(32, 5, 2), (), "lstm", 2),
    "lstm, projected": (nn.LSTM(32, 24, 2, proj_size=6), (), "lstm", 2),
    "gru": (nn.GRU(32, 16, 2), (STATE,), "gru", 2),
    "gru, both ways": (nn.GRU(32, 16, bidirectional=True, batch_first=True), (), "gru", 2),
    "rnn": (nn.RNN(32, 16, 2), (STATE,), "rnn", 2),
}


def own(buffer):
    return [name for name in operators(buffer) if name.startswith("etx::")]


def check(module, inputs, expected, config=None):
    edge = to_edge(export(module, inputs))
    buffer = edge.to_executorch(config).buffer
    assert own(buffer) == expected
    with torch.no_grad():
        assert_same(etx_runtime.load(buffer)(*on_device(inputs)), module.eval()(*inputs))
    return buffer


CASES = [
    *((name, Weight) for name in NETS),
    *((name, int4) for name in ("lstm, projected", "gru", "rnn")),
    ("lstm", one_scale),
]


@pytest.mark.parametrize(("case", "make"), CASES)
def test_a_layer_is_one_operator(case, make):
    net, states, name, count = NETS[case]
    inputs = (X, *states)
    buffer = check(Quantized(net, make), inputs, [f"etx::weight_only_{name}.out"] * count)
    assert not any("linear" in name or "dequantize" in name for name in operators(buffer))


def test_other_targets_have_steps():
    check(Quantized(nn.LSTM(32, 16)), (X,), [], STEPWISE)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_groups_are_those_of_the_weight(kind):
    name = f"etx::weight_only_{kind.__name__.lower()}.out"
    check(Quantized(kind(32, 16, 2), Grouped), (X,), [name] * 2)


def test_cells_are_layers_of_one_step():
    class Cell(Quantized):
        def forward(self, x):
            return super().forward(x[0])

    check(Cell(nn.LSTMCell(32, 16)), (X,), ["etx::weight_only_lstm.out"])
    check(Cell(nn.GRUCell(32, 16, bias=False)), (X,), ["etx::weight_only_gru.out"])
    check(Cell(nn.RNNCell(32, 16, nonlinearity="relu")), (X,), ["etx::weight_only_rnn.out"])


def test_the_graph_computes_what_the_device_does():
    module = Quantized(nn.LSTM(32, 24, proj_size=6))
    manager = to_edge(export(module, (X,))).to_executorch()
    found = manager.exported_program().module()(X)
    with torch.no_grad():
        torch.testing.assert_close(found, module.eval()(X))


@pytest.mark.parametrize(
    ("make", "only", "reason"),
    [
        (by_input, "", "input_weight: the weight has a scale for each input"),
        (Weight, "weight_hh", "input_weight: the weight is not quantized"),
    ],
)
def test_other_weights_are_dequantized_once_a_call(make, only, reason):
    module = Quantized(nn.LSTM(32, 16), make, only=only)
    check(module, (X,), ["etx::lstm.out"])
    program = to_edge(export(module, (X,))).to_executorch().exported_program()
    reasons = [
        text for node in program.graph.nodes for text in node.meta.get(DECLINED, {}).values()
    ]
    assert any(text.startswith(reason) for text in reasons)


def test_rows_that_are_rounded_at_run_time_stay_so():
    module = Quantized(nn.GRU(32, 16), enter=by_token)
    check(module, (X,), ["etx::weight_only_gru.out"])


@pytest.mark.parametrize("batch_first", [False, True])
def test_batch_and_length_may_change(batch_first):
    module = Quantized(nn.LSTM(32, 16, 2, bidirectional=True, batch_first=batch_first)).eval()
    dims = ({0: Dim("first", max=9), 1: Dim("second", max=40)},)
    buffer = compile(module, (X,), dynamic_shapes=dims).buffer
    assert own(buffer) == ["etx::weight_only_lstm.out"] * 4
    model = etx_runtime.load(buffer)
    for first, second in ((7, 3), (1, 1), (9, 40)):
        x = torch.randn(first, second, 32)
        assert_same(model(x.numpy()), module(x))


def test_weights_are_a_quarter():
    sizes = [
        len(to_edge(export(module, (X,))).to_executorch().buffer)
        for module in (nn.LSTM(32, 256), Quantized(nn.LSTM(32, 256)))
    ]
    assert sizes[1] < 0.28 * sizes[0]
