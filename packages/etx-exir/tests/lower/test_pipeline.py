# SPDX-License-Identifier: BSD-3-Clause
"""Small models of all kinds: every pass leaves a valid program that computes what eager does."""

import copy

import pytest
import torch
from etx_exir import to_edge, to_edge_transform_and_lower
from etx_exir.errors import ConfigError, UnsupportedOperatorError
from etx_exir.lower.copy_program import copy_program
from etx_exir.lower.decompose import decompose
from etx_exir.lower.verify import Dialect, verify
from etx_exir.passes import PIPELINE
from etx_exir.target.check import UnsupportedError
from programs import Calls, assert_like_eager, counts, edge
from torch import nn
from torch.nn import functional as F

LENGTH = torch.export.Dim("length", min=1, max=32)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(32, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        return F.normalize(self.layer(x).mean(1), dim=-1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.q, self.k = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.register_buffer("keys", torch.zeros(1, 2, 16, 4))

    def forward(self, tokens, position):
        x = self.embedding(tokens)
        q, k = (f(x).view(1, -1, 2, 4).transpose(1, 2) for f in (self.q, self.k))
        self.keys[:, :, position] = k
        mask = torch.arange(16) <= position[:, None]
        y = F.scaled_dot_product_attention(q, self.keys, self.keys, attn_mask=mask)
        return F.linear(y.transpose(1, 2).flatten(2), self.embedding.weight)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 6, 3, bias=False), nn.BatchNorm2d(6), nn.Hardswish())
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(6, 6, 1), nn.Hardsigmoid())
        self.up = nn.Upsample(scale_factor=2, mode="bilinear")

    def forward(self, x):
        y = self.conv(x)
        return self.up(F.silu(y * self.gate(y)))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(5.0))

    def forward(self, x):
        self.n += 1
        return x + self.n


class Nested(nn.Module):
    def forward(self, features, pair):
        mixed = features["a"] * features["b"]
        return {"pair": (mixed + pair[0], pair[1]), "sum": mixed.sum(-1)}


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell(4, 6, num_layers=2, batch_first=True)

    def forward(self, x):
        return self.cell(x)[0][:, -1]


def cond(x):
    return torch.cond(x.sum() > 0, lambda x: x.view(6) * 2 + 1, lambda x: x.t().reshape(6), (x,))


def tokens(length):
    return torch.randint(0, 20, (1, length))


def nested_inputs():
    return {"a": torch.randn(2, 3), "b": torch.randn(2, 3)}, (torch.randn(2, 3), torch.randn(2))


MODELS = {
    "encoder": (Encoder(), [(tokens(5),), (tokens(9),)], ({1: LENGTH},)),
    "decoder": (
        Decoder(),
        [(tokens(4), torch.arange(4)), *((tokens(1), torch.tensor([i])) for i in range(4, 7))],
        ({1: LENGTH}, {0: LENGTH}),
    ),
    "block": (Block(), [(torch.randn(2, 3, 8, 8),), (torch.randn(2, 3, 8, 8),)], None),
    "counter": (Counter(), [(torch.ones(2),)] * 3, None),
    "nested": (Nested(), [nested_inputs(), nested_inputs()], None),
    "cond": (Calls(cond), [(torch.ones(2, 3),), (-torch.ones(2, 3),)], None),
    "lstm": (Recurrent(nn.LSTM), [(torch.randn(1, 3, 4),)], None),
    "gru": (Recurrent(nn.GRU), [(torch.randn(1, 3, 4),)], None),
    "channels last": (
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()),
        [(torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last),)],
        None,
    ),
    "strided": (
        Calls(lambda x: F.avg_pool2d(x.permute(0, 3, 1, 2), 2).flatten(1)),
        [(torch.randn(1, 8, 8, 3),)],
        None,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    module, calls, shapes = copy.deepcopy(MODELS[request.param])
    if request.param == "decoder":
        dims = {name: torch.export.Dim(name, max=16) for name in ("t",)}
        shapes = ({1: dims["t"]}, {0: dims["t"]})
    module.eval()
    exported = torch.export.export(module, copy.deepcopy(calls[0]), dynamic_shapes=shapes)
    return module, calls, decompose(exported)


def test_each_pass_leaves_a_valid_program(model):
    module, calls, program = model
    program = copy_program(program)
    verify(program, Dialect.CORE, program_ops(program))
    for item in PIPELINE:
        before = str(program.graph)
        changed = item.run(program)
        verify(program, Dialect.ATEN)
        assert changed or str(program.graph) == before, item.name
        if changed:
            assert_like_eager(program, module, *calls)
    verify(program, Dialect.EDGE)


def program_ops(program):
    """Views and memory formats are what Edge is there for."""
    return [n.target for n in program.graph.nodes if str(n.target).startswith("aten.clone")]


def test_the_pipeline_is_idempotent(model):
    program = copy_program(model[2])
    for item in PIPELINE:
        item.run(program)
    again = [item.name for item in PIPELINE if item.run(program)]
    assert again == []


def test_the_given_program_stays_as_it_is():
    exported = torch.export.export(MODELS["block"][0].eval(), MODELS["block"][1][0])
    before, held = str(exported.graph), set(exported.state_dict)
    to_edge(exported)
    assert str(exported.graph) == before
    assert set(exported.state_dict) == held


def test_no_weight_is_transposed_and_nothing_is_cast_at_run_time():
    program = edge(MODELS["encoder"][0], (tokens(5),))
    names = counts(program)
    assert not any("_to_copy" in name or "dim_order" in name for name in names)
    assert not {"aten.mm.default", "aten.addmm.default"} & set(names)
    constants = {s.arg.name for s in program.graph_signature.input_specs if s.target}
    turned = [
        node
        for node in program.graph.nodes
        if "permute" in str(node.target) and node.args[0].name in constants
    ]
    assert turned == []


def test_a_tied_weight_is_stored_once():
    module = Decoder()
    exported = torch.export.export(module, (tokens(1), torch.tensor([0])))
    file = to_edge(exported).to_executorch()
    sizes = [len(blob) for blob in file.pte_file.constants]
    assert sizes.count(module.embedding.weight.nbytes) == 1


def test_several_methods_and_constant_methods():
    first, second = (
        torch.export.export(Calls(function), (torch.ones(2),))
        for function in (torch.sin, torch.cos)
    )
    manager = to_edge({"one": first, "two": second}, constant_methods={"size": 2})
    assert manager.methods == {"one", "two"}
    assert manager.config_methods == {"size"}
    plans = manager.to_executorch().executorch_program.execution_plan
    assert [plan.name for plan in plans] == ["one", "two", "size"]
    with pytest.raises(ConfigError, match="no method 'three'; methods: one, two"):
        manager.exported_program("three")


def test_passes_by_method_name_methods_there_are():
    exported = torch.export.export(Calls(torch.sin), (torch.ones(2),))
    message = "by method: no method 'fwd', 'x'; methods: forward"
    with pytest.raises(ConfigError, match=f"passes {message}"):
        to_edge(exported).transform({"fwd": [], "x": []})
    for wrong in (
        {"transform_passes": {"fwd": [], "x": []}},
        {"partitioner": {"fwd": [], "x": []}},
    ):
        with pytest.raises(ConfigError, match=message):
            to_edge_transform_and_lower(exported, **wrong)
    assert to_edge(exported).transform({"forward": []}).methods == {"forward"}


def test_user_passes():
    def sin_to_cos(module):
        for node in module.graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default

    exported = torch.export.export(Calls(lambda input: input.sin()), (torch.ones(2),))
    manager = to_edge(exported)
    changed = manager.transform([sin_to_cos])
    assert counts(manager.exported_program()) == {"aten.sin.default": 1}
    assert counts(changed.exported_program()) == {"aten.cos.default": 1}
    with pytest.raises(ConfigError, match="is not a pass"):
        manager.transform(["cse"])


def test_operators_without_an_out_variant_are_named_with_their_line():
    with torch.library._scoped_library("etx_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor[]")
        library.impl("twice", lambda x: [x * 2, x * 2], "CompositeExplicitAutograd")
        twice = torch.ops.etx_test.twice.default
        exported = torch.export.export(Calls(lambda x: twice(twice(x)[0])), (torch.ones(2),))
        edge = to_edge(exported)
        with pytest.raises(UnsupportedOperatorError) as caught:
            verify(edge.exported_program(), Dialect.EDGE)
        assert len(caught.value.findings) == 2
        assert "programs.py:" in str(caught.value)
        assert "register" in str(caught.value)
        verify(edge.exported_program(), Dialect.EDGE, [twice])
        with pytest.raises(UnsupportedError, match=r"twice\.default has no out variant, 2 times"):
            edge.to_executorch()
