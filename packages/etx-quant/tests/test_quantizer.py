# SPDX-License-Identifier: BSD-3-Clause
"""Every row: behind a convolution it is quantized, and what comes out runs as in eager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import etx_runtime
import pytest
import torch
from etx_exir import compile, to_edge
from etx_quant import (
    Int8Quantizer,
    XNNPACKQuantizer,
    compare,
    get_symmetric_quantization_config,
    quantize,
)
from etx_quant.quantizer import module_names
from etx_quant.rows import ROWS
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node
from torch.nn import functional as F
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

aten = torch.ops.aten
Function = Callable[[Tensor], Tensor]


class Behind(nn.Module):
    """A convolution, then ``function`` of its result, then another convolution."""

    def __init__(self, function: Function, channels: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 8, 3, padding=1)
        self.function = function
        self.leave = nn.Conv2d(channels, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.leave(self.function(self.enter(x)))
        return result


FUNCTIONS: dict[object, Function | tuple[Function, int]] = {
    aten.abs.default: torch.abs,
    aten.celu.default: F.celu,
    aten.celu_.default: lambda x: F.celu(x.flip(1), inplace=True),
    aten.div.Tensor: lambda x: x / 3,
    aten.hardshrink.default: F.hardshrink,
    aten.log_sigmoid.default: F.logsigmoid,
    aten.mish.default: F.mish,
    aten.mish_.default: lambda x: F.mish(x.flip(1), inplace=True),
    aten.neg.default: lambda x: -x,
    aten.selu.default: F.selu,
    aten.selu_.default: lambda x: F.selu(x.flip(1), inplace=True),
    aten.softplus.default: F.softplus,
    aten.softshrink.default: F.softshrink,
    aten.threshold.default: lambda x: F.threshold(x, 0.1, -0.2),
    aten.adaptive_avg_pool1d.default: lambda x: F.adaptive_avg_pool1d(x[0], 3)[None],
    aten.adaptive_avg_pool2d.default: lambda x: F.adaptive_avg_pool2d(x, 2),
    aten.add.Tensor: lambda x: x + x[:, :1],
    aten.add_.Tensor: lambda x: x.flip(1).add_(1.0),
    aten.avg_pool1d.default: lambda x: F.avg_pool1d(x[0], 2)[None],
    aten.avg_pool2d.default: lambda x: F.avg_pool2d(x, 2),
    aten.clamp.default: lambda x: x.flip(1).clamp(-0.5, 0.5),
    aten.clamp_.default: lambda x: x.flip(1).clamp_(-0.5, 0.5),
    aten.elu.default: F.elu,
    aten.elu_.default: lambda x: F.elu_(x.flip(1)),
    aten.gelu.default: F.gelu,
    aten.hardsigmoid.default: F.hardsigmoid,
    aten.hardsigmoid_.default: lambda x: F.hardsigmoid(x, inplace=True),
    aten.hardswish.default: F.hardswish,
    aten.hardswish_.default: lambda x: F.hardswish(x, inplace=True),
    aten.hardtanh.default: lambda x: F.hardtanh(x.flip(1)),
    aten.hardtanh_.default: lambda x: F.hardtanh(x.flip(1), inplace=True),
    aten.leaky_relu.default: lambda x: F.leaky_relu(x, 0.1),
    aten.leaky_relu_.default: lambda x: F.leaky_relu_(x, 0.1),
    aten.mean.dim: lambda x: x.mean((2, 3), keepdim=True),
    aten.mul.Tensor: lambda x: x * x[:, :, :1],
    aten.mul_.Tensor: lambda x: x.flip(2).mul_(x),
    aten.relu.default: lambda x: F.relu(x.flip(1)),
    aten.relu_.default: lambda x: F.relu_(x.flip(1)),
    aten.relu6.default: lambda x: F.relu6(x.flip(1)),
    aten.relu6_.default: lambda x: F.relu6(x.flip(1), inplace=True),
    aten.rsub.Scalar: lambda x: 1 - x,
    aten.sigmoid.default: torch.sigmoid,
    aten.sigmoid_.default: lambda x: x.sigmoid_(),
    aten.silu.default: F.silu,
    aten.silu_.default: lambda x: F.silu(x, inplace=True),
    aten.sub.Tensor: lambda x: x - x[:, :1],
    aten.sub_.Tensor: lambda x: x.flip(1).sub_(0.5),
    aten.sum.dim_IntList: lambda x: x.sum((2, 3), keepdim=True),
    aten.tanh.default: torch.tanh,
    aten.tanh_.default: lambda x: x.tanh_(),
    aten.amax.default: lambda x: x.amax((2, 3), keepdim=True),
    aten.amin.default: lambda x: x.amin((2, 3), keepdim=True),
    aten.cat.default: (lambda x: torch.cat([x, F.relu(x)], 1), 16),
    aten.clone.default: lambda x: x.clone(),
    aten.contiguous.default: lambda x: x.permute(0, 1, 3, 2).contiguous(),
    aten.dropout.default: lambda x: F.dropout(x, 0.5, False),
    aten.expand.default: lambda x: x[:, :, :1].expand(-1, -1, 8, -1),
    aten.flatten.using_ints: lambda x: x.flatten(2).view(2, 8, 8, 8),
    aten.flip.default: lambda x: x.flip(3),
    aten.gather.default: (lambda x: x.gather(1, torch.tensor([[[[2]], [[0]], [[1]]]])), 3),
    aten.index.Tensor: (lambda x: x[:, [3, 1, 2]], 3),
    aten.index_select.default: (lambda x: x.index_select(1, torch.tensor([3, 1, 2])), 3),
    aten.max_pool1d.default: lambda x: F.max_pool1d(x[0], 2)[None],
    aten.max_pool2d.default: lambda x: F.max_pool2d(x, 2),
    aten.maximum.default: lambda x: torch.maximum(x, x.flip(1)),
    aten.minimum.default: lambda x: torch.minimum(x, x.flip(1)),
    aten.pad.default: lambda x: F.pad(x, (1, 1)),
    aten.permute.default: lambda x: x.permute(0, 1, 3, 2),
    aten.pixel_shuffle.default: (lambda x: F.pixel_shuffle(x, 2), 2),
    aten.pixel_unshuffle.default: (lambda x: F.pixel_unshuffle(x, 2), 32),
    aten.repeat.default: lambda x: x.repeat(1, 1, 2, 1),
    aten.reshape.default: lambda x: x.reshape(2, 8, 16, 4),
    aten.roll.default: lambda x: x.roll(1, 2),
    aten.select.int: lambda x: x[:, :, 3][:, :, None],
    aten.slice.Tensor: lambda x: x[:, :, 2:5],
    aten.squeeze.default: lambda x: x[:, :, :1].squeeze().unsqueeze(2),
    aten.squeeze.dim: lambda x: x[:, :, :1].squeeze(2).unsqueeze(2),
    aten.squeeze.dims: lambda x: x[:, :, :1].squeeze((2,)).unsqueeze(2),
    aten.stack.default: lambda x: torch.stack([x, x * 0.5], 2).flatten(2, 3),
    aten.transpose.int: lambda x: x.transpose(2, 3),
    aten.unflatten.int: lambda x: x.unflatten(2, (2, 4)).flatten(3),
    aten.unsqueeze.default: lambda x: x[:, :, 0].unsqueeze(2),
    aten.upsample_bilinear2d.vec: lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    aten.upsample_nearest1d.vec: lambda x: F.interpolate(x[0], scale_factor=2)[None],
    aten.upsample_nearest2d.vec: lambda x: F.interpolate(x, scale_factor=2),
    aten.view.default: lambda x: x.view(2, 8, 16, 4),
    aten.chunk.default: (lambda x: x.chunk(2, 1)[1], 4),
    aten.split.Tensor: (lambda x: x.split(4, 1)[1], 4),
    aten.split_with_sizes.default: (lambda x: x.split([2, 6], 1)[1], 6),
    aten.unbind.int: lambda x: x.unbind(2)[1][:, :, None],
}

LAYERS: dict[object, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    aten.conv1d.default: (lambda: nn.Conv1d(4, 6, 3), (2, 4, 16)),
    aten.conv1d.padding: (lambda: nn.Conv1d(4, 6, 4, padding="same"), (2, 4, 16)),
    aten.conv2d.default: (lambda: nn.Conv2d(4, 8, 3, groups=4), (2, 4, 9, 9)),
    aten.conv2d.padding: (lambda: nn.Conv2d(4, 8, 3, padding="same"), (2, 4, 9, 9)),
    aten.conv_transpose1d.default: (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), (2, 4, 16)),
    aten.conv_transpose2d.input: (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2), (2, 4, 9, 9)),
    aten.linear.default: (lambda: nn.Linear(16, 4), (3, 16)),
}


COMPOSED: dict[object, Function] = {
    aten.adjoint.default: lambda x: x.adjoint(),
    aten.alias.default: lambda x: x[:, 0:],
    aten.alpha_dropout.default: lambda x: F.alpha_dropout(x, 0.5, False),
    aten.atleast_2d.default: torch.atleast_2d,
    aten.atleast_3d.default: torch.atleast_3d,
    aten.broadcast_to.default: lambda x: x[:, :, :1].broadcast_to(2, 8, 8, 8),
    aten.channel_shuffle.default: lambda x: F.channel_shuffle(x, 2),
    aten.column_stack.default: lambda x: torch.column_stack([x, x.flip(3)]),
    aten.concat.default: lambda x: torch.concat([x, x.flip(3)], 1),
    aten.concatenate.default: lambda x: torch.concatenate([x, x.flip(3)], 1),
    aten.detach.default: lambda x: x.detach(),
    aten.dstack.default: lambda x: torch.dstack([x, x.flip(3)]),
    aten.expand_as.default: lambda x: x[:, :, :1].expand_as(x),
    aten.feature_alpha_dropout.default: lambda x: F.feature_alpha_dropout(x, 0.5, False),
    aten.feature_dropout.default: lambda x: F.dropout2d(x, 0.5, False),
    aten.fliplr.default: torch.fliplr,
    aten.flipud.default: torch.flipud,
    aten.hstack.default: lambda x: torch.hstack([x, x.flip(3)]),
    aten.mT.default: lambda x: x.mT,
    aten.moveaxis.int: lambda x: x.moveaxis(2, 3),
    aten.moveaxis.intlist: lambda x: x.moveaxis((2, 3), (3, 2)),
    aten.movedim.int: lambda x: x.movedim(2, 3),
    aten.movedim.intlist: lambda x: x.movedim((2, 3), (3, 2)),
    aten.narrow.default: lambda x: x.narrow(1, 2, 5),
    aten.numpy_T.default: lambda x: x[0, 0].T,
    aten.positive.default: lambda x: +x,
    aten.ravel.default: lambda x: x.ravel(),
    aten.rot90.default: lambda x: x.rot90(1, (2, 3)),
    aten.row_stack.default: lambda x: torch.row_stack([x, x.flip(3)]),
    aten.swapaxes.default: lambda x: x.swapaxes(2, 3),
    aten.swapdims.default: lambda x: x.swapdims(2, 3),
    aten.t.default: lambda x: x[0, 0].t(),
    aten.tile.default: lambda x: x.tile(1, 1, 2, 1),
    aten.view_as.default: lambda x: x[:, :4].contiguous().view_as(x[:, 4:]),
    aten.vstack.default: lambda x: torch.vstack([x, x.flip(3)]),
    aten.dsplit.array: lambda x: torch.dsplit(x, [2])[1],
    aten.dsplit.int: lambda x: torch.dsplit(x, 2)[1],
    aten.hsplit.array: lambda x: torch.hsplit(x, [2])[1],
    aten.hsplit.int: lambda x: torch.hsplit(x, 2)[1],
    aten.tensor_split.indices: lambda x: x.tensor_split((2,), 1)[1],
    aten.tensor_split.sections: lambda x: x.tensor_split(2, 1)[1],
    aten.unsafe_chunk.default: lambda x: x.unsafe_chunk(2, 1)[1],
    aten.unsafe_split.Tensor: lambda x: torch.unsafe_split(x, 4, 1)[1],
    aten.vsplit.array: lambda x: torch.vsplit(x, [1])[1],
    aten.vsplit.int: lambda x: torch.vsplit(x, 2)[1],
}
"""Moves that export keeps whole."""


class Every(nn.Module):
    """All of them, side by side."""

    def __init__(self) -> None:
        super().__init__()
        pairs = [found if isinstance(found, tuple) else (found, 8) for found in FUNCTIONS.values()]
        self.behind = nn.ModuleList(Behind(*pair) for pair in pairs)
        self.layers = nn.ModuleList(make() for make, _ in LAYERS.values())

    def forward(self, image: Tensor, inputs: list[Tensor]) -> list[Tensor]:
        behind = [module(image) for module in self.behind]
        return behind + [layer(x) for layer, x in zip(self.layers, inputs, strict=True)]


@dataclass
class Tried:
    """The quantized graph, and of each operator three results: float, quantized, on the device."""

    graph: Graph
    results: dict[object, tuple[Tensor, Tensor, Tensor]]

    def calls(self, op: object) -> list[Node]:
        """Return the calls of ``op`` that stand for its row."""
        ops = [*FUNCTIONS, *LAYERS]
        at = ops.index(op)
        name = f"behind.{at}" if op in FUNCTIONS else f"layers.{at - len(FUNCTIONS)}"
        nodes = [node for node in self.graph.nodes if node.target is op]
        return [node for node in nodes if name in module_names(node)] or nodes


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def tried() -> Tried:
    torch.manual_seed(0)
    model = Every().eval()
    batches = [
        (torch.randn(2, 3, 8, 8), [torch.randn(shape) for _, shape in LAYERS.values()])
        for _ in range(2)
    ]
    quantized = quantize(model, batches)
    with torch.no_grad():
        buffer = compile(torch.export.export(quantized, batches[0])).buffer
        expected, actual = model(*batches[0]), quantized(*batches[0])
    device = [torch.as_tensor(y) for y in etx_runtime.load(buffer)(*batches[0])]
    results = zip(expected, actual, device, strict=True)
    return Tried(quantized.graph, dict(zip([*FUNCTIONS, *LAYERS], results, strict=True)))


def reads(node: Node) -> bool:
    """Tell whether all float inputs of ``node`` are dequantized."""
    given = [n for n in node.all_input_nodes if n.op != "get_attr"]
    tensors = [n for n in given if "lift" not in n.name and "detach" not in n.name]
    return bool(tensors) and all("dequantize" in str(n.target) for n in tensors)


def calls(model: GraphModule, op: object) -> list[Node]:
    return [node for node in model.graph.nodes if node.target is op]


def test_every_row_is_tried() -> None:
    elsewhere = {aten.embedding.default, aten.lstm.input, aten.gru.input}
    elsewhere |= {aten.rnn_tanh.input, aten.rnn_relu.input}
    tried = FUNCTIONS.keys() | LAYERS.keys() | COMPOSED.keys()
    assert tried | elsewhere == ROWS.keys()


@pytest.mark.parametrize("op", [*FUNCTIONS, *LAYERS], ids=str)
def test_is_near_to_float_and_the_same_on_the_device(op: object, tried: Tried) -> None:
    expected, actual, device = tried.results[op]
    noise = float((actual - expected).square().mean() / expected.square().mean())
    assert noise < 10**-1.5
    step = float(actual.abs().max()) / 100
    assert ((device - actual).abs() > step).float().mean() < 0.01


@pytest.mark.parametrize("op", FUNCTIONS, ids=str)
def test_is_quantized_behind_a_convolution(op: object, tried: Tried) -> None:
    node = tried.calls(op)[0]
    assert reads(node)
    results = [u for u in node.users if "getitem" in u.name] or [node]
    users = [user for result in results for user in result.users]
    assert users
    assert all("quantize_per_tensor" in str(user.target) for user in users)


def test_moves_that_export_keeps_whole_are_quantized() -> None:
    class Moves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter = nn.Conv2d(3, 8, 3, padding=1)

        def forward(self, x: Tensor) -> list[Tensor]:
            x = self.enter(x)
            return [function(x) for function in COMPOSED.values()]

    batches = [(torch.randn(2, 3, 8, 8),)]
    quantized = quantize(Moves().eval(), batches)
    for op in COMPOSED:
        node = calls(quantized, op)[0]
        assert reads(node), op
        results = [u for u in node.users if "getitem" in u.name] or [node]
        users = [user for result in results for user in result.users]
        assert users, op
        assert all("quantize_per_tensor" in str(user.target) for user in users), op
    device = etx_runtime.load(compile(torch.export.export(quantized, batches[0])).buffer)
    step = 1 / 50
    for expected, actual in zip(quantized(*batches[0]), device(*batches[0]), strict=True):
        torch.testing.assert_close(torch.as_tensor(actual), expected, rtol=0, atol=step)


@pytest.mark.parametrize("op", LAYERS, ids=str)
def test_a_weighted_layer_has_int8_weights_by_output_channel(op: object, tried: Tried) -> None:
    (node,) = tried.calls(op)
    assert reads(node)
    weight = node.args[1]
    assert isinstance(weight, Node)
    assert "dequantize_per_channel" in str(weight.target)
    assert weight.args[3] == (1 if "transpose" in str(op) else 0)


def test_a_clamp_is_taken_in() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU6()).eval()
    quantized = quantize(model, [(torch.randn(2, 3, 8, 8),)])
    (clamp,) = [n for n in quantized.graph.nodes if "tanh" in str(n.target)]
    assert clamp.args[0].target is aten.conv2d.default


def float_values(quantized: GraphModule, batches: list[tuple[Tensor]]) -> int:
    """Count the instructions of the file whose result is float."""
    manager = to_edge(torch.export.export(quantized, batches[0])).to_executorch()
    nodes = manager.exported_program().graph_module.graph.nodes
    values = [n.meta.get("val") for n in nodes if n.op == "call_function"]
    return sum(isinstance(x, Tensor) and x.is_floating_point() for x in values)


def test_lines_are_resized_in_int8() -> None:
    """As images of one row, by sizes and by scales."""
    for options in ({"scale_factor": 2.5}, {"size": 31, "align_corners": True}):
        resize = nn.Upsample(mode="linear", **options)  # type: ignore[arg-type]
        model = nn.Sequential(nn.Conv1d(3, 8, 3), resize, nn.Conv1d(8, 4, 3)).eval()
        batches = [(torch.randn(2, 3, 12),)]
        quantized = quantize(model, batches)
        (node,) = calls(quantized, aten.upsample_bilinear2d.vec)
        assert reads(node)
        manager = to_edge(torch.export.export(quantized, batches[0])).to_executorch()
        device = etx_runtime.load(manager.buffer, outputs="torch")
        assert compare(model, device, batches).sqnr > 30
        assert float_values(quantized, batches) <= 1


def test_what_is_padded_in_a_circle_stays_in_int8() -> None:
    circle = {"padding": (2, 1), "padding_mode": "circular"}
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, **circle)).eval()  # type: ignore[arg-type]
    batches = [(torch.randn(2, 3, 9, 8),)]
    quantized = quantize(model, batches)
    assert float_values(quantized, batches) <= 1
    assert compare(model, quantized, batches).sqnr > 35


@pytest.mark.parametrize("mode", ["constant", "circular", "reflect"])
def test_what_is_padded_keeps_a_batch_that_changes(mode: str) -> None:
    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter, self.leave = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.leave(F.pad(self.enter(x), (1, 2, 1, 0), mode=mode))
            return result

    shapes = ({0: torch.export.Dim("batch", min=1, max=8)},)
    model, batches = Padded().eval(), [(torch.randn(2, 3, 9, 8),)]
    quantized = quantize(model, batches, dynamic_shapes=shapes)
    program = torch.export.export(quantized, batches[0], dynamic_shapes=shapes)
    device = etx_runtime.load(compile(program).buffer, outputs="torch")
    assert compare(quantized, device, [(torch.randn(5, 3, 9, 8),)]).sqnr > 38


@pytest.mark.parametrize("slopes", [1, 8])
def test_a_prelu_is_made_of_others(slopes: int) -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.PReLU(slopes), nn.Conv2d(8, 8, 3)).eval()
    nn.init.uniform_(model[1].weight, 0.1, 0.5)
    batches = [(torch.randn(2, 3, 8, 8),)]
    quantized = quantize(model, batches)
    assert compare(model, quantized, batches).sqnr > 35
    op = aten.leaky_relu.default if slopes == 1 else aten.add.Tensor
    assert [reads(node) for node in calls(quantized, op)] == [True]
    assert float_values(quantized, batches) <= 1


def test_a_quotient_of_tensors_stays_in_float() -> None:
    class Quotient(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.a(x) / self.b(x).exp()  # type: ignore[no-any-return]

    quantized = quantize(Quotient().eval(), [(torch.randn(2, 8),)])
    (node,) = calls(quantized, aten.div.Tensor)
    assert all("quantize" not in str(user.target) for user in node.users)


def test_xnnpack_leaves_out_what_it_lacks() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU(), nn.Conv2d(8, 8, 3)).eval()
    batches = [(torch.randn(2, 3, 8, 8),)]
    quantizer = XNNPACKQuantizer()
    quantizer.set_global(Int8Quantizer()._default)
    (gelu,) = calls(quantize(model, batches, quantizer), aten.gelu.default)
    assert all("quantize_per_tensor" in str(user.target) for user in gelu.users)
    (first, *_) = calls(quantize(model, batches), aten.gelu.default)
    assert reads(first)


@pytest.mark.parametrize(
    ("quantizer", "pairs"), [(XNNPACKQuantizer, 4), (Int8Quantizer, 0)], ids=["xnnpack", "int8"]
)
def test_joined_inputs_are_quantized_as_executorch_does(
    quantizer: type[XNNPACKQuantizer], pairs: int
) -> None:
    class Joined(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            joined = torch.cat([x, y])
            return joined + joined

    chosen = quantizer().set_global(get_symmetric_quantization_config())
    example = (torch.randn(1, 2, 3), torch.randn(3, 2, 3))
    prepared = prepare_pt2e(torch.export.export(Joined(), example).module(), chosen)
    prepared(*example)
    graph = convert_pt2e(prepared).graph
    found = [n for n in graph.nodes if "quantize_per_tensor" in str(n.target)]
    assert len(found) == 2 * pairs
