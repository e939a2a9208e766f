# SPDX-License-Identifier: BSD-3-Clause
"""One loaded graph with other sizes from call to call computes as if it were loaded for them."""

from __future__ import annotations

import mmap

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_xnnpack import XnnpackBlob, read_blob, write_blob
from etx_backend_xnnpack._generated import xnnpack as fbs
from evaluate import Evaluation
from graphs import GraphBuilder, program
from node_cases import CASES

SIZES = {
    "MaxPooling2d": [(1, 9, 8, 5), (1, 9, 8, 4), (1, 7, 8, 5), (1, 9, 8, 1), (1, 9, 8, 5)],
    "ResizeBilinear2d": [(1, 4, 5, 3), (1, 4, 5, 2), (1, 3, 5, 3), (1, 4, 5, 3)],
    "ArgMaxPooling2d": [(1, 6, 6, 5), (1, 6, 6, 3), (1, 4, 6, 5)],
    "AvgPooling2d": [(1, 8, 8, 5), (1, 8, 8, 2), (1, 6, 8, 5)],
    "Conv2d": [(2, 9, 8, 6), (1, 9, 8, 6), (2, 9, 5, 6), (2, 4, 8, 6)],
    "Conv2d-dynamic-qcint8": [(1, 6, 7, 8), (2, 6, 7, 8), (2, 3, 7, 8), (1, 6, 7, 8)],
    "DepthwiseConv2d": [(2, 9, 8, 6), (1, 9, 8, 6), (2, 3, 4, 6)],
    "ConvTranspose2d": [(1, 4, 5, 6), (1, 2, 5, 6), (1, 4, 5, 6)],
    "FullyConnected-dynamic-qcint8-17": [(17, 64), (1, 64), (16, 64), (2, 64)],
    "FullyConnected-dynamic-qbint4-17": [(17, 64), (1, 64), (16, 64), (2, 64)],
    "Softmax": [(3, 7, 9), (1, 7, 9), (3, 7, 2), (3, 7, 9)],
    "Transpose": [(2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 4, 2)],
    "GlobalAvgPooling2d": [(2, 4, 3, 5), (1, 4, 3, 5), (2, 2, 3, 5)],
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", SIZES)
def test_sizes_change(name, threads):
    torch.manual_seed(0)
    builder = GraphBuilder()
    CASES[name](builder)
    etx_runtime.set_num_threads(threads)
    model = etx_runtime.load(builder.program(), outputs="torch")
    for sizes in SIZES[name]:
        x = torch.randn(sizes)
        expected = Evaluation(builder.blob(), builder.named).run(x)
        found = model(x)
        for one, other in zip(
            found if isinstance(found, tuple) else (found,), expected, strict=True
        ):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_plans_follow_every_value():
    """A value that shrinks while another grows does not lie where the other did."""
    builder = GraphBuilder()
    a, b = builder.input(64, 64), builder.input(64, 64)
    y, z = builder.output(64, 64), builder.output(64, 64)
    for source, target in ((a, y), (b, z)):
        first, second = builder.value((64, 64)), builder.value((64, 64))
        builder.node("Negate", fbs.Unary(input_id=source, output_id=first))
        builder.node("Abs", fbs.Unary(input_id=first, output_id=second))
        builder.node("Square", fbs.Unary(input_id=second, output_id=target))
    model = etx_runtime.load(builder.program(), outputs="torch")
    for rows in ((1, 64), (64, 1), (32, 64), (64, 32), (1, 1), (64, 64)):
        inputs = [torch.randn(count, 64) for count in rows]
        for found, x in zip(model(*inputs), inputs, strict=True):
            torch.testing.assert_close(found, x * x)


def test_threads_change():
    builder = GraphBuilder()
    CASES["Conv2d"](builder)
    x = torch.randn(2, 9, 8, 6)
    (expected,) = Evaluation(builder.blob(), builder.named).run(x)
    model = etx_runtime.load(builder.program(), outputs="torch")
    for threads in (1, 4, 2, 8, 1):
        etx_runtime.set_num_threads(threads)
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


def test_memory_that_ends_with_a_page():
    """XNNPACK reads past tensors: arguments at the end of a page are copied."""
    builder = GraphBuilder()
    x, y = builder.input(32, 32), builder.output(32, 32)
    builder.node("Softmax", fbs.Unary(input_id=x, output_id=y))
    method = etx_runtime.Runtime.get().load_program(builder.program()).load_method("forward")
    pages = np.frombuffer(mmap.mmap(-1, 2 * mmap.PAGESIZE), np.float32)
    for start in (0, 1024, 1023):
        inside = pages[start : start + 1024].reshape(32, 32)
        inside[:] = np.random.default_rng(0).normal(size=(32, 32))
        (found,) = method.execute([inside])
        expected = torch.softmax(torch.from_numpy(inside.copy()), -1)
        torch.testing.assert_close(torch.from_numpy(np.array(found)), expected)


def old_program(builder: GraphBuilder) -> bytes:
    """Write the graph as old exporters did: no header, constants inside, inputs that quantize."""
    graph = read_blob(builder.blob()).graph
    stored = [bytes(builder.named[place.named_key].data) for place in graph.constant_data[1:]]
    graph.inline_constants = [fbs.InlineConstant(), *map(fbs.InlineConstant, stored)]
    graph.constant_data = []
    if graph.nodes[0].operator_type == fbs.Operator.Convert:
        convert = graph.nodes.pop(0).operator
        graph.values[convert.input_id].tensor.run_time_dtype = fbs.DataType.QDINT8
        graph.nodes[0].operator.input1_id = convert.input_id
        del graph.values[convert.output_id]
    return program(write_blob(XnnpackBlob(graph, identifier="XN00", header=False)), {})


@pytest.mark.parametrize("name", ["Conv2d", "Softmax", "FullyConnected-dynamic-qcint8-17"])
def test_sizes_change_in_old_blobs(name):
    torch.manual_seed(0)
    builder = GraphBuilder()
    CASES[name](builder)
    model = etx_runtime.load(old_program(builder), outputs="torch")
    for sizes in SIZES[name]:
        x = torch.randn(sizes)
        (expected,) = Evaluation(builder.blob(), builder.named).run(x)
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
