# SPDX-License-Identifier: BSD-3-Clause
"""Each kind of node computes what it says."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack._generated import xnnpack as fbs
from evaluate import Evaluation
from graphs import FP16, FP32, NONE, QINT8, GraphBuilder
from node_cases import CASES, POSITIVE

NOT_IN_XNNPACK = {"NONE", "ScaledDotProductAttention"}


def test_every_kind_has_a_case():
    kinds = {kind.name for kind in fbs.Operator} - NOT_IN_XNNPACK
    assert {name.partition("-")[0] for name in CASES} == kinds


def inputs_of(evaluation: Evaluation, positive: bool) -> list[torch.Tensor]:
    inputs = []
    for index in evaluation.blob.graph.input_ids:
        tensor = evaluation.tensors[index]
        if tensor.dtype == QINT8:
            inputs.append(torch.randint(-128, 128, tensor.sizes, dtype=torch.int8))
            continue
        x = torch.randn(tensor.sizes)
        inputs.append((x.abs() + 0.1 if positive else x).half() if tensor.dtype == FP16 else x)
        if positive:
            inputs[-1] = inputs[-1].abs() + 0.1
    return inputs


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_agrees(name, threads):
    torch.manual_seed(0)
    builder = GraphBuilder()
    CASES[name](builder)
    evaluation = Evaluation(builder.blob(), builder.named)
    inputs = inputs_of(evaluation, name.partition("-")[0] in POSITIVE)
    expected = evaluation.run(*inputs)
    etx_runtime.set_num_threads(threads)
    found = etx_runtime.load(builder.program(), outputs="torch")(*inputs)
    found = list(found) if isinstance(found, tuple) else [found]
    for one, other in zip(found, expected, strict=True):
        tolerance = {torch.int8: 1, torch.float16: 4e-3}.get(one.dtype, 2e-5)
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance)


CLAMPS = (
    ((2.5, 3.0),),
    ((-3.0, -2.0),),
    ((-1.0, 0.5), (2.0, 3.0)),
    ((0.0, 1.0), (1.0, 2.0)),
    ((0.0, 1.0), (-3.0, -2.0)),
    ((0.0, 4.0), (1.0, 2.0), (2.5, 3.0)),
)


def clamped(builder, ranges, moved):
    """Put clamps, and copies between them if it is moved, behind the only result of a graph."""
    graph = builder.graph
    (last,) = graph.output_ids
    entry = graph.values[last].tensor
    is_quantized = isinstance(entry, fbs.QuantizedTensorValue)
    tensor = entry.tensor if is_quantized else entry
    quantization = entry.quantization if is_quantized else None
    external, tensor.flags, tensor.external_id = tensor.external_id, 0, NONE
    kinds = [step for each in ranges for step in ((("Copy", None),) * moved + (("Clamp", each),))]
    graph.output_ids = []
    for i, (kind, given) in enumerate(kinds):
        flags = 2 if i + 1 == len(kinds) else 0
        value = builder.value(tensor.sizes, tensor.dtype, quantization, flags=flags)
        builder.node(kind, fbs.Unary(input_id=last, output_id=value), given)
        last = value
    entry = graph.values[last].tensor
    tensor = entry.tensor if is_quantized else entry
    tensor.external_id, graph.num_externals = external, graph.num_externals - 1


def results_of(name):
    builder = GraphBuilder()
    CASES[name](builder)
    found = Evaluation(builder.blob(), builder.named)
    return [found.tensors[index].dtype for index in builder.graph.output_ids]


@pytest.mark.parametrize("moved", [0, 1])
@pytest.mark.parametrize(
    "name", [name for name in CASES if results_of(name) in ([FP32], [FP16], [QINT8])]
)
def test_clamps_of_files(name, moved):
    for ranges in CLAMPS:
        builder = GraphBuilder()
        CASES[name](builder)
        clamped(builder, ranges, moved)
        evaluation = Evaluation(builder.blob(), builder.named)
        inputs = inputs_of(evaluation, name.partition("-")[0] in POSITIVE)
        (expected,) = evaluation.run(*inputs)
        found = etx_runtime.load(builder.program(), outputs="torch")(*inputs)
        tolerance = 1 if found.dtype == torch.int8 else 4e-3
        torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=tolerance)


def test_refused_graph_names_node_and_values():
    """XNNPACK refuses a ratio of scales only when it makes operators."""
    builder = GraphBuilder()
    first, last = builder.input(3, 5), builder.input(3, 5)
    x = builder.input(2, 4, dtype=QINT8, quantization=fbs.PerTensor(scale=1.0, zero_point=0))
    number = fbs.PerTensor(scale=1.0, zero_point=0)
    w = builder.value((6, 4), QINT8, number, torch.ones(6, 4, dtype=torch.int8))
    small = fbs.PerTensor(scale=1e-6, zero_point=0)
    y, left, right = (
        builder.output(2, 6, dtype=QINT8, quantization=small),
        builder.output(3, 5),
        builder.output(3, 5),
    )
    builder.node("Negate", fbs.Unary(input_id=first, output_id=left))
    payload = fbs.FullyConnected(input1_id=x, filter_id=w, bias_id=NONE, output_id=y)
    builder.node("FullyConnected", payload)
    builder.node("Abs", fbs.Unary(input_id=last, output_id=right))
    expected = rf"node 1 \(FullyConnected\).*value {x} qint8, value {w} qint8 -> value {y} qint8"
    with pytest.raises(etx_runtime.LoadError, match=expected):
        etx_runtime.load(builder.program()).method()


def scales_of_two(kind, first, second, out, **fields):
    """Return a graph of one node of two int8 inputs, or of one where `second` is none."""
    builder = GraphBuilder()
    at = [fbs.PerTensor(scale=s, zero_point=0) for s in (first, second, out) if s]
    ids = [builder.input(2, 4, dtype=QINT8, quantization=each) for each in at[:-1]]
    target = builder.output(2, 4, dtype=QINT8, quantization=at[-1])
    names = ("input_id",) if second is None else ("input1_id", "input2_id")
    payload = {"LeakyRelu": fbs.LeakyRelu} | dict.fromkeys(("Clamp", "Convert"), fbs.Unary)
    payload = payload.get(kind, fbs.Binary)
    given = dict(zip(names, ids, strict=True))
    builder.node(kind, payload(**given, output_id=target, **fields))
    return builder


@pytest.mark.parametrize(
    ("kind", "scales", "fields", "ratio"),
    [
        ("Add", (1.0, 0.5, 1e-3), {}, "1000"),
        ("Subtract", (1e-6, 1e-6, 1.0), {}, "1e-06"),
        ("Multiply", (1.0, 1.0, 1e-3), {}, "1000"),
        ("Multiply", (1e-3, 1e-3, 1.0), {}, "1e-06"),
        ("Convert", (1.0, None, 1e-3), {}, "1000"),
        ("Convert", (1e-3, None, 1.0), {}, "0.001"),
        ("LeakyRelu", (1.0, None, 5e-3), {"negative_slope": 0.1}, "200"),
        ("LeakyRelu", (1.0, None, 1.0), {"negative_slope": -300.0}, "-300"),
        ("Clamp", (1.0, None, 0.5), {}, "another scale"),
    ],
)
def test_ratio_that_multipliers_do_not_hold_is_refused(kind, scales, fields, ratio):
    builder = scales_of_two(kind, *scales, **fields)
    said = ratio if " " in ratio else rf"a ratio of scales of {ratio}"
    with pytest.raises(etx_runtime.LoadError, match=rf"node 0 \({kind}\).*{said}"):
        etx_runtime.load(builder.program()).method()
