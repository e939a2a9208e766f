# SPDX-License-Identifier: BSD-3-Clause
"""A file says which value of the exported program each of its tensors equals."""

from __future__ import annotations

import json

import pytest
import torch
from etx_exir import to_edge
from etx_exir.ir.equal_values import note_of
from etx_exir.passes import NodePass
from etx_schema.inspect.reads_writes import effects
from torch import nn

PERMUTE = torch.ops.aten.permute_copy.default


def notes(module, inputs):
    """Return operator and note of every result, in the order of the instructions."""
    with torch.no_grad():
        program = torch.export.export(module.eval(), inputs)
    pte = to_edge(program).to_executorch().pte_file
    document = json.loads(bytes(pte.named_data["etx/debug"].data))["forward"]
    names = {node.name for node in program.graph.nodes}
    found = [
        (effect.op.partition("::")[2].partition(".")[0], document["values"].get(str(slot)))
        for effect in effects(pte.program.execution_plan[0])
        for slot in effect.writes
    ]
    for _, note in found:
        name = note[0] if isinstance(note, list) else note
        assert name is None or "." in name or name in names or name.partition("#")[0] in names
    return found


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x):
        return (self.linear(x).view(2, 2, 3).transpose(1, 2) * 0.5).softmax(-1)


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,))


class Parts(nn.Module):
    def forward(self, x):
        largest, where = torch.max(x, 1)
        return largest + 1, where, *(part.exp() for part in x.split(2, 1))


def test_a_convolution_that_took_in_its_batch_norm():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    found = notes(module, (torch.randn(1, 3, 8, 8),))
    assert found == [("convolution", "batch_norm"), ("relu", "relu")]


def test_a_scale_that_was_folded_is_a_factor_above_it():
    found = notes(Scaled(), (torch.randn(2, 4),))
    assert found[0] == ("linear", ["linear", 0.5])
    assert ("_softmax", "softmax") in found
    assert "mul" in [note for _, note in found]


def test_values_of_branches_have_a_path():
    found = dict(notes(Branches(), (torch.randn(3),)))
    assert found["sin"] == "true_graph_0.sin"
    assert found["cos"] == "false_graph_0.cos"


def test_an_operator_with_several_results():
    found = notes(Parts(), (torch.randn(3, 4),))
    assert found[:2] == [("max", "getitem"), ("max", "getitem_1")]
    assert [note for op, note in found if op == "exp"] == ["exp", "exp_1"]


def test_parts_of_a_decomposed_operator_are_noted_by_their_places():
    found = notes(nn.Mish(), (torch.randn(3),))
    assert found[0][1] == "mish#0:exp.default"
    assert found[-1][1] == "mish"


@pytest.mark.parametrize("module", [nn.GELU(), nn.LayerNorm(4), nn.Softmax(-1)])
def test_one_operator_is_one_value(module):
    found = notes(module, (torch.randn(2, 4),))
    assert found[0][1] is not None


def test_a_permuted_value_is_noted_before_it_is_permuted_back():
    def layer(node, graph):
        call, order = graph.call_function, [0, 2, 1]
        inner = call(torch.ops.aten.relu.default, (call(PERMUTE, (node.args[0], order)),))
        return call(PERMUTE, (inner, order))

    class Permuted(NodePass):
        targets = (torch.ops.aten.relu.default,)

        def rewrite(self, node, graph):
            return layer(node, graph)

    program = to_edge(torch.export.export(nn.ReLU(), (torch.randn(2, 3, 4),)))
    edge = program.transform([Permuted()]).exported_program()
    found = [note_of(node) for node in edge.graph.nodes if node.op == "call_function"]
    assert found == [None, ("relu", 1.0, [0, 2, 1]), "relu"]
