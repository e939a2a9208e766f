# SPDX-License-Identifier: BSD-3-Clause
"""Planned memory of the model set: never above ExecuTorch's, far below the sum of all tensors."""

from __future__ import annotations

import pytest
from conftest import Workshop
from etx_schema import ExecutionPlan, Tensor, read_pte, tensor_nbytes


def plan(workshop: Workshop, model: str, exporter: str) -> ExecutionPlan:
    (method,) = read_pte(workshop.folder / model / f"{exporter}.pte").program.execution_plan
    return method


def arena(method: ExecutionPlan) -> int:
    return sum(method.non_const_buffer_sizes)


def test_arena_is_not_above_executorchs(model: str, workshop: Workshop) -> None:
    assert arena(plan(workshop, model, "etx")) <= arena(plan(workshop, model, "executorch"))


@pytest.mark.parametrize("name", ["resnet18", "minilm"])
def test_arena_is_below_40_percent_of_all_planned_tensors(name: str, workshop: Workshop) -> None:
    method = plan(workshop, name, "etx")
    total = 0
    for value in method.values:
        tensor = value.val
        if isinstance(tensor, Tensor) and tensor.allocation_info is not None:
            total += tensor_nbytes(tensor)
    assert total > 0
    assert arena(method) < 0.4 * total, f"{arena(method):,} of {total:,} bytes"
