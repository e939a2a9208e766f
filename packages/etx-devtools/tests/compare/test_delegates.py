# SPDX-License-Identifier: BSD-3-Clause
"""Programs with delegates: values at their borders, and inside of them."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from compared_models import exported
from etx_backend_xnnpack.partition import XnnpackPartitioner
from etx_devtools.compare import compare
from etx_devtools.compare.inside import between_integers, compile_tapped
from etx_exir import to_edge_transform_and_lower
from etx_schema import serialize_pte
from planted import quantized
from torch.ao.quantization.fx import _decomposed  # noqa: F401
from torch.ops import aten

NAMES = ("convolutions", "transformer", "dynamic")


def delegated(program):
    edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
    return edge.to_executorch().pte_file


def run(pte, inputs):
    method = etx_runtime.Runtime.get().load_program(serialize_pte(pte)).load_method("forward")
    return method.execute([x.numpy() for x in inputs])


@pytest.mark.parametrize("name", NAMES)
def test_borders(name):
    program, inputs = exported(name)
    report = compare(delegated(program), program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    (call,) = report.calls
    assert any(check.operator == "delegate XnnpackBackend" for check in call.checks)
    assert {check.by for check in call.checks} == {"value"}


@pytest.mark.parametrize("name", NAMES)
def test_inside(name):
    program, inputs = exported(name)
    tapped = compile_tapped(program, [XnnpackPartitioner()])
    plain, more = run(delegated(program), inputs), run(tapped, inputs)
    assert len(more) > len(plain)
    assert all(np.array_equal(a, b) for a, b in zip(plain, more, strict=False))
    report = compare(tapped, program, [inputs])
    assert report.first is None, "\n".join(report.lines())
    assert len(report.calls[0].checks) >= len(more)


def test_inside_of_integers():
    """What is returned beside the outputs leaves integer kernels in use: they stay equal."""
    program, inputs, _ = quantized()
    plain = run(delegated(program), inputs)
    more = run(compile_tapped(program, [XnnpackPartitioner()]), inputs)
    assert len(more) > len(plain) + 5
    assert np.array_equal(plain[0], more[0])


def test_a_deep_graph_is_walked_once():
    graph = torch.fx.Graph()
    deep = graph.placeholder("x")
    for _ in range(3000):
        deep = graph.call_function(aten.add.Tensor, (deep, graph.call_function(aten.relu, (deep,))))
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    graph.output(graph.call_function(quantize, (deep, 1.0, 0, -128, 127, torch.int8)))
    assert len(between_integers(graph)) == 6001
