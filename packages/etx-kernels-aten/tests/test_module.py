# SPDX-License-Identifier: BSD-3-Clause
"""A program is a module of a larger model, in eager mode and in torch.compile."""

from __future__ import annotations

import copy
import pickle

import etx_runtime
import pytest
import torch
from counter import Counter
from etx_exir import to_edge
from etx_kernels_aten import Module
from torch import nn
from torch.testing import assert_close


def written(module, inputs, path, dynamic_shapes=None):
    exported = torch.export.export(module, inputs, dynamic_shapes=dynamic_shapes)
    to_edge(exported).to_executorch().save(path)
    return path


@pytest.fixture
def layer(tmp_path):
    module = nn.Sequential(nn.Linear(8, 8), nn.GELU()).eval()
    return module, Module(written(module, (torch.ones(2, 8),), tmp_path / "layer.pte"))


@pytest.fixture
def counter(tmp_path):
    return Module(written(Counter(), (torch.ones(2),), tmp_path / "counter.pte"))


def test_inside_an_eager_model(layer):
    module, program = layer
    first, last = nn.Linear(4, 8), nn.Linear(8, 2)
    x = torch.randn(2, 4)
    with torch.no_grad():
        given = nn.Sequential(first, program, last)(x)
        assert_close(given, nn.Sequential(first, module, last)(x))


def test_compiled_as_one_call(layer):
    _, program = layer
    outer = nn.Sequential(nn.Linear(4, 8), program, nn.Linear(8, 2))
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    x = torch.randn(2, 4)
    with torch.no_grad():
        assert_close(torch.compile(outer, backend=backend, fullgraph=True)(x), outer(x))
    (graph,) = graphs
    calls = [n for n in graph.graph.nodes if n.target is torch.ops.etx_aten.call]
    calls += [n for n in graph.graph.nodes if n.target is torch.ops.etx_aten.call.default]
    assert len(calls) == 1


def test_compiled_with_state(counter):
    compiled = torch.compile(counter, backend="aot_eager", fullgraph=True)
    assert [compiled(torch.ones(2)).tolist() for _ in range(3)] == [[2, 2], [4, 4], [6, 6]]


def test_compiled_with_open_sizes(tmp_path):
    shapes = ({0: torch.export.Dim("n", min=2, max=64)},)
    path = written(nn.ReLU(), (torch.randn(5, 3),), tmp_path / "open.pte", shapes)
    program = Module(path)
    compiled = torch.compile(lambda x: program(x) + 1, backend="aot_eager", fullgraph=True)
    for n in (5, 2, 64):
        x = torch.randn(n, 3)
        assert_close(compiled(x), x.relu() + 1)


def test_state_dict_goes_both_ways(counter, tmp_path):
    outer = nn.Sequential(counter)
    outer(torch.ones(2))
    state = outer.state_dict()
    assert {name: x.tolist() for name, x in state.items()} == {"0.count": [1, 1]}
    outer(torch.ones(2))
    outer.load_state_dict(state)
    assert outer(torch.zeros(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"Missing key.*0\.count"):
        outer.load_state_dict({})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*0\.other"):
        outer.load_state_dict(state | {"0.other": torch.ones(1)})
    with pytest.raises(RuntimeError, match=r"buffer 'count': expected float32\[2\]"):
        outer.load_state_dict({"0.count": torch.ones(3)})


def test_copies_have_state_of_their_own(counter):
    counter(torch.ones(2))
    for other in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
        assert other(torch.ones(2)).tolist() == [4, 4]
    assert counter(torch.zeros(2)).tolist() == [2, 2]


def test_nested_inputs_and_results(tmp_path):
    class Nested(nn.Module):
        def forward(self, pair, *, scale):
            return {"sum": pair[0] + pair[1], "rest": [pair[0] * scale["by"]]}

    args, kwargs = ((torch.ones(2), torch.ones(2)),), {"scale": {"by": torch.full((2,), 3.0)}}
    exported = torch.export.export(Nested(), args, kwargs)
    to_edge(exported).to_executorch().save(tmp_path / "nested.pte")
    program = Module(tmp_path / "nested.pte")
    expected = {"sum": torch.full((2,), 2.0), "rest": [torch.full((2,), 3.0)]}
    assert_close(program(*args, **kwargs), expected)
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    assert_close(compiled(*args, **kwargs), expected)


def test_fake_tensors_follow_the_rule(layer, counter):
    torch.library.opcheck(torch.ops.etx_aten.call, (layer[1]._number, [torch.ones(2, 8)], [], []))
    fake = ("test_schema", "test_autograd_registration", "test_faketensor")
    given = (torch.zeros(()), counter._number, [torch.ones(2)], [], [])
    torch.library.opcheck(torch.ops.etx_aten.call_with_state, given, test_utils=fake)


def test_no_gradient(layer):
    x = torch.ones(2, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"etx_aten"):
        layer[1](x).sum().backward()


def test_wrong_inputs(layer):
    with pytest.raises(
        etx_runtime.InputError, match=r"expected float32\[2, 8\], got float32\[3, 8\]"
    ):
        layer[1](torch.ones(3, 8))
    with pytest.raises(etx_runtime.InputError, match=r"takes 1 inputs, got 2"):
        layer[1](torch.ones(2, 8), torch.ones(2, 8))
