# SPDX-License-Identifier: BSD-3-Clause
"""Each kind of node computes what it says."""

from __future__ import annotations

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack._generated import xnnpack as fbs
from evaluate import Evaluation
from graphs import FP16, QINT8, GraphBuilder
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
