# SPDX-License-Identifier: BSD-3-Clause
"""Pools with gaps, without a batch, and of int16 whose windows differ: one delegate each."""

from __future__ import annotations

import pytest
import torch
from etx_backend_arm.compile_spec import TosaCompileSpec
from etx_backend_arm.partition import TOSAPartitioner
from etx_backend_arm.tosa import Op
from lowered import delegates, interpreted, lower, operators
from test_filled import check
from test_forms import Whole
from torch import nn

DILATED = [
    (nn.MaxPool2d(2, 1, 0, 2), (1, 2, 7, 8)),
    (nn.MaxPool2d(3, 2, 1, 2), (2, 3, 9, 10)),
    (nn.MaxPool2d((2, 3), (3, 1), (1, 1), (3, 2)), (1, 4, 11, 6)),
    (nn.MaxPool2d(3, 3, 1, (1, 4), ceil_mode=True), (1, 1, 7, 13)),
    (nn.MaxPool2d((3, 2), (2, 4), 1, (4, 3), ceil_mode=True), (2, 1, 10, 7)),
    (nn.MaxPool1d(3, 2, 1, 2), (2, 3, 11)),
    (nn.MaxPool2d(3, 2, 1, 2), (3, 9, 10)),
]
SPECS = ("TOSA-1.0+FP", "TOSA-1.0+INT", "TOSA-1.0+INT+int16")


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("index", range(len(DILATED)))
def test_largest_of_what_is_apart(index: int, spec: str) -> None:
    torch.manual_seed(0)
    pool, shape = DILATED[index]
    model = Whole(lambda x: pool(x) * 2).eval()
    check(model, TosaCompileSpec(spec), torch.randn(shape), steps=2)


UNBATCHED = [
    nn.MaxPool2d(3, 2, 1),
    nn.MaxPool2d(2, 2, 0, ceil_mode=True),
    nn.AvgPool2d(3, 2, 1),
    nn.AvgPool2d(2, 1, 0),
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("index", range(len(UNBATCHED)))
def test_without_a_batch(index: int, spec: str) -> None:
    torch.manual_seed(0)
    check(UNBATCHED[index].eval(), TosaCompileSpec(spec), torch.randn(3, 9, 11), steps=2)


AVERAGES = [
    nn.AvgPool2d(3, 1, 1, count_include_pad=False),
    nn.AvgPool2d(3, 2, 1, ceil_mode=True),
    nn.AvgPool2d((4, 6), (1, 2), (2, 3)),
    nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
    nn.AvgPool2d(3, 2, 1, divisor_override=2),
    nn.AvgPool2d(2, 3, 1, True, True, 7),
]


@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize("index", range(len(AVERAGES)))
def test_averages_of_int16(index: int, is_scaled: bool) -> None:
    torch.manual_seed(0)
    pool, spec = AVERAGES[index], TosaCompileSpec("TOSA-1.0+INT+int16")
    model = Whole((lambda x: pool(x * 0.37)) if is_scaled else pool)
    check(model.eval(), spec, torch.randn(2, 3, 12, 13), steps=2)


def test_places_of_the_largest_stay_outside() -> None:
    model = Whole(lambda x: torch.nn.functional.max_pool1d(x, 2, return_indices=True)[1]).eval()
    partitioner = TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP"))
    program = lower(model, torch.randn(1, 3, 8), partitioner=partitioner)
    assert "max_pool2d_with_indices.default" in {
        n.target.__name__ for n in program.graph.nodes if n.op == "call_function"
    }


def test_infinities_are_largest() -> None:
    x = torch.full((1, 1, 6, 6), -float("inf"))
    x[0, 0, 3, 3] = float("inf")
    model = nn.MaxPool2d(2, 1, 0, 2)
    program = lower(model, x, partitioner=TOSAPartitioner(TosaCompileSpec("TOSA-1.0+FP")))
    (delegate,) = delegates(program)
    assert operators(delegate.processed_bytes).count(Op.MAX_POOL2D) == 1
    (actual,) = interpreted(program, x)
    assert torch.equal(actual, model(x))
