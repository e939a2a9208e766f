# SPDX-License-Identifier: BSD-3-Clause
"""Graphs that ExecuTorch exported run here, and compute what their nodes say."""

from __future__ import annotations

from pathlib import Path

import etx_runtime
import pytest
import torch
from etx_schema import read_pte
from evaluate import Evaluation
from graphs import program

DATA = Path(__file__).parent / "data"
DELEGATES = [
    pytest.param(path, index, id=f"{path.stem}-{index}")
    for path in sorted(DATA.glob("*.pte"))
    for index in range(len(read_pte(path).delegates))
]


def inputs_of(evaluation: Evaluation) -> list[torch.Tensor]:
    tensors = [evaluation.tensors[index] for index in evaluation.blob.graph.input_ids]
    dtypes = {"FP32": torch.float32, "FP16": torch.float16}
    return [torch.randn(each.sizes).to(dtypes[each.dtype.name]) for each in tensors]


@pytest.mark.parametrize(("path", "index"), DELEGATES)
def test_agrees_with_its_nodes(path, index):
    pte = read_pte(path)
    blob = bytes(pte.delegates[index])
    torch.manual_seed(0)
    evaluation = Evaluation(blob, pte.named_data)
    inputs = inputs_of(evaluation)
    expected = evaluation.run(*inputs)
    model = etx_runtime.load(program(blob, pte.named_data), outputs="torch")
    found = model(*inputs)
    found = list(found) if isinstance(found, tuple) else [found]
    tolerance = 5e-3 if "fp16" in path.stem else 2e-5
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(
            one.float(), other.float(), rtol=tolerance, atol=tolerance, equal_nan=True
        )


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pte")), ids=lambda path: path.stem)
def test_whole_programs_run(path):
    model = etx_runtime.load(str(path), outputs="torch")
    torch.manual_seed(1)
    plan = read_pte(path).program.execution_plan[0]
    sizes = [plan.values[index].val.sizes for index in plan.inputs]
    dtype = torch.float16 if path.stem == "fp16" else torch.float32
    inputs = [torch.randn(each).to(dtype) for each in sizes]
    once, again = model(*inputs), model(*inputs)
    for one, other in zip(
        *(each if isinstance(each, tuple) else (each,) for each in (once, again)), strict=True
    ):
        assert one.numel() > 0
        assert torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def test_smaller_and_larger_batches():
    pte = read_pte(DATA / "linear_dyn_shape.pte")
    (blob,) = map(bytes, pte.delegates)
    model = etx_runtime.load(str(DATA / "linear_dyn_shape.pte"), outputs="torch")
    for rows in (3, 8, 1, 5, 5, 8):
        x = torch.randn(rows, 32)
        (expected,) = Evaluation(blob, pte.named_data).run(x)
        torch.testing.assert_close(model(x), expected)
    with pytest.raises(etx_runtime.ExecutionError, match=r"node \d+ \(FullyConnected\): value"):
        model(torch.randn(3, 16))
