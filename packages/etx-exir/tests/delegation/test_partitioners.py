# SPDX-License-Identifier: BSD-3-Clause
"""The partitioners of the package: what they take, and that no partition needs itself."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from etx_exir import DelegationSpec, to_edge
from etx_exir.partitioners import (
    ModulePartitioner,
    OperatorSupportPartitioner,
    PatternPartitioner,
    group_nodes,
    pattern_graph,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Calls, assert_like_eager, counts
from torch import nn
from torch.fx import Graph
from torch.fx.passes.operator_support import OperatorSupportBase
from toy import SavedBackend

aten = torch.ops.aten
SAVED = DelegationSpec(SavedBackend.__name__)
CALL = "executorch_call_delegate"


def edge(module, *inputs):
    return to_edge(torch.export.export(module.eval(), inputs))


@st.composite
def random_dags(draw):
    """Nodes as (supported, arguments): every argument is an earlier node, or the input (-1)."""
    size = draw(st.integers(1, 24))
    argument = [st.integers(-1, i - 1) for i in range(size)]
    return [(draw(st.booleans()), draw(argument[i]), draw(argument[i])) for i in range(size)]


def build(dag):
    graph = Graph()
    nodes = {-1: graph.placeholder("x")}
    for i, (supported, a, b) in enumerate(dag):
        target = aten.add.Tensor if supported else aten.sub.Tensor
        nodes[i] = graph.call_function(target, (nodes[a], nodes[b]))
    graph.output(tuple(nodes.values()))
    return graph


def is_acyclic(graph, groups):
    """Sort the graph in which each group is one vertex."""
    vertex = {node: i for i, group in enumerate(groups) for node in group}
    vertex = {node: vertex.get(node, node) for node in graph.nodes}
    needs = {v: set() for v in vertex.values()}
    for node in graph.nodes:
        needs[vertex[node]] |= {vertex[a] for a in node.all_input_nodes} - {vertex[node]}
    while needs:
        ready = [v for v, others in needs.items() if not others]
        if not ready:
            return False
        for v in ready:
            del needs[v]
        for others in needs.values():
            others.difference_update(ready)
    return True


@settings(max_examples=200, deadline=None)
@given(random_dags())
def test_groups_have_no_cycle_and_cannot_grow(dag):
    graph = build(dag)
    groups = group_nodes(graph, lambda node: node.target == aten.add.Tensor)
    assert sorted(n.name for g in groups for n in g) == sorted(
        n.name for n in graph.nodes if n.target == aten.add.Tensor
    )
    assert is_acyclic(graph, groups)
    for i, first in enumerate(groups):
        for j in range(i + 1, len(groups)):
            second = groups[j]
            touching = any(a in first for n in second for a in n.all_input_nodes) or any(
                a in second for n in first for a in n.all_input_nodes
            )
            others = [g for k, g in enumerate(groups) if k not in (i, j)]
            if touching:
                assert not is_acyclic(graph, [*others, [*first, *second]])


@settings(max_examples=12, deadline=None)
@given(random_dags())
def test_random_programs_compute_the_same(dag):
    def function(x):
        values = {-1: x}
        for i, (supported, a, b) in enumerate(dag):
            operation = torch.add if supported else torch.sub
            values[i] = operation(values[a], values[b]) * (0.5 + i)
        return tuple(values[i] for i in range(len(dag)))

    module, x = Calls(function), torch.randn(2)
    manager = edge(module, x)
    before = counts(manager.exported_program())
    program = manager.to_backend(
        OperatorSupportPartitioner(SAVED, [aten.add.Tensor])
    ).exported_program()
    assert "aten.add.Tensor" not in counts(program)
    assert (CALL in counts(program)) == ("aten.add.Tensor" in before)
    assert_like_eager(program, module, (x,))


def test_a_thousand_nodes_are_grouped_quickly():
    graph = Graph()
    node = start = graph.placeholder("x")
    for i in range(3000):
        target = aten.add.Tensor if i % 5 else aten.sub.Tensor
        node = graph.call_function(target, (node, start))
    graph.output(node)
    groups = group_nodes(graph, lambda node: node.target == aten.add.Tensor)
    assert Counter(map(len, groups)) == {4: 600}


class Adds(OperatorSupportBase):
    def is_node_supported(self, submodules, node):
        return self.why_not(node) is None

    def why_not(self, node):
        return None if node.target == aten.add.Tensor else "no addition"


@pytest.mark.parametrize(
    "support", [Adds(), [aten.add.Tensor], lambda node: node.target == aten.add.Tensor]
)
def test_support_is_an_object_a_list_or_a_function(support):
    module, x = Calls(lambda x: (x + x * x).sin()), torch.randn(3)
    partitioner = OperatorSupportPartitioner(SAVED, support)
    program = edge(module, x).to_backend(partitioner).exported_program()
    assert counts(program) == {CALL: 1, "aten.mul.Tensor": 1, "aten.sin.default": 1}
    (sin,) = [n for n in program.graph.nodes if n.target == aten.sin.default]
    assert partitioner.why_not(sin) in ("no addition", "aten.sin.default is not supported")


def test_small_groups_stay_out():
    module = Calls(lambda x: ((x + x) * x).sin() + x)
    partitioner = OperatorSupportPartitioner(SAVED, [aten.add.Tensor, aten.mul.Tensor], minimum=2)
    program = edge(module, torch.randn(3)).to_backend(partitioner).exported_program()
    assert counts(program) == {CALL: 1, "aten.sin.default": 1, "aten.add.Tensor": 1}
    (add,) = [n for n in program.graph.nodes if n.target == aten.add.Tensor]
    reasons = add.meta["why_not_delegated"]
    assert reasons == {"OperatorSupportPartitioner": "its group has 1 operator, fewer than 2"}


def gated(x, y):
    return x * torch.sigmoid(y)


def test_patterns():
    pattern = pattern_graph(gated, (torch.randn(2), torch.randn(2)))
    module = Calls(lambda x, y: gated(x, y) + gated(gated(x, x.cos()), x.exp()))
    x, y = torch.randn(3), torch.randn(3)
    for merge, calls in ((False, 3), (True, 2)):
        partitioner = PatternPartitioner(SAVED, [pattern], merge=merge)
        program = edge(module, x, y).to_backend(partitioner).exported_program()
        assert counts(program)[CALL] == calls
        assert_like_eager(program, module, (x, y))


def test_a_match_that_would_need_itself_is_left():
    def multiplied(a, b):
        more = a + 1
        return more, more * b

    pattern = pattern_graph(multiplied, (torch.randn(2), torch.randn(2)))
    module, x = Calls(lambda x: (lambda y: y * y.sin())(x + 1)), torch.randn(3)
    partitioner = PatternPartitioner(SAVED, [pattern])
    program = edge(module, x).to_backend(partitioner).exported_program()
    assert CALL not in counts(program)
    module = Calls(lambda x, y: (lambda z: z * y + z)(x + 1))
    program = edge(module, x, x.clone()).to_backend(partitioner).exported_program()
    assert counts(program) == {CALL: 1, "aten.add.Tensor": 1}
    assert_like_eager(program, module, (x, x + 2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x) + x
        return x


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"classes": [nn.Linear]}, {CALL: 4, "aten.relu.default": 2, "aten.add.Tensor": 2}),
        ({"classes": ["Block"]}, {CALL: 2, "aten.add.Tensor": 2}),
        (
            {"paths": ["blocks.1"]},
            {CALL: 1, "aten.linear.default": 2, "aten.relu.default": 1, "aten.add.Tensor": 2},
        ),
        (
            {"paths": ["blocks.*"], "support": [aten.relu.default]},
            {CALL: 2, "aten.linear.default": 4, "aten.add.Tensor": 2},
        ),
    ],
)
def test_modules_by_class_and_by_path(options, expected):
    module, x = Stack(), torch.randn(2, 4)
    partitioner = ModulePartitioner(SAVED, **options)
    program = edge(module, x).to_backend(partitioner).exported_program()
    assert counts(program) == expected
    assert_like_eager(program, module, (x,))


def quantized(x, scale=0.05):
    ops = torch.ops.quantized_decomposed
    q = ops.quantize_per_tensor(x, scale, 0, -128, 127, torch.int8)
    return ops.dequantize_per_tensor(q, scale, 0, -128, 127, torch.int8)


def test_a_shared_dequantize_goes_into_every_partition():
    ops = torch.ops.quantized_decomposed
    support = [ops.dequantize_per_tensor.default, aten.sin.default, aten.cos.default]

    def function(x):
        y = quantized(x)
        return y.sin(), y.cos().relu(), y.exp()

    module, x = Calls(function), torch.randn(3)
    program = (
        edge(module, x).to_backend(OperatorSupportPartitioner(SAVED, support)).exported_program()
    )
    calls = [n for n in program.graph.nodes if str(n.target) == CALL]
    assert [[a.meta["val"].dtype for a in n.args[1:]] for n in calls] == [[torch.int8]] * len(calls)
    assert counts(program)["quantized_decomposed.quantize_per_tensor.default"] == 1
    assert_like_eager(program, module, (x,))


def test_what_only_a_bundle_reads_goes_with_it():
    """Even where the rest of the bundle cannot be in the group of its source."""
    graph = Graph()
    first = graph.call_function(aten.add.Tensor, (graph.placeholder("x"), 1))
    near = graph.call_function(aten.neg.default, (first,))
    outside = graph.call_function(aten.sub.Tensor, (first, 1))
    far = graph.call_function(aten.neg.default, (outside,))
    both = graph.call_function(aten.cat.default, ([near, far],))
    graph.output(both)
    groups = group_nodes(graph, lambda node: node is first, [[near, far, both]])
    assert groups == [[first], [near, far, both]]
