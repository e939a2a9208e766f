# SPDX-License-Identifier: BSD-3-Clause
"""Planned memory of the model set: never above ExecuTorch's, near the least there can be.

The bound comes from the file (`etx_schema.inspect.memory`), not from the planner. Files with other
plans, several arenas, inputs and outputs of the caller, run on both runtimes.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import RUNTIMES, Workshop
from etx_schema import ExecutionPlan, Tensor, read_pte, tensor_nbytes
from etx_schema.inspect.memory import memory_of
from names import PLANNED, PLANS, ROWS
from test_pairings import compare


def plan(workshop: Workshop, model: str, exporter: str) -> ExecutionPlan:
    (method,) = read_pte(workshop.folder / model / f"{exporter}.pte").program.execution_plan
    return method


def arena(method: ExecutionPlan) -> int:
    return sum(method.non_const_buffer_sizes)


def test_arena_is_not_above_executorchs(
    model: str, workshop: Workshop, request: pytest.FixtureRequest
) -> None:
    if ROWS[model].own:
        request.applymarker(pytest.mark.xfail(strict=True, reason=ROWS[model].own))
    assert arena(plan(workshop, model, "etx")) <= arena(plan(workshop, model, "executorch"))


def test_arena_is_near_the_largest_live_set(model: str, workshop: Workshop) -> None:
    (method,) = memory_of(read_pte(workshop.folder / model / f"{ROWS[model].file}.pte"))
    for each in method.arenas:
        assert each.largest_live_set <= each.size <= 1.03 * each.largest_live_set


@pytest.mark.parametrize("name", ["resnet18", "minilm"])
def test_arena_is_below_40_percent_of_all_planned_tensors(name: str, workshop: Workshop) -> None:
    workshop.lowered_by_etx(name)
    method = plan(workshop, name, "etx")
    total = 0
    for value in method.values:
        tensor = value.val
        if isinstance(tensor, Tensor) and tensor.allocation_info is not None:
            total += tensor_nbytes(tensor)
    assert total > 0
    assert arena(method) < 0.4 * total, f"{arena(method):,} of {total:,} bytes"


@pytest.fixture(scope="session")
def planned(workshop: Workshop) -> Workshop:
    """Lower some models under every plan and run them on both runtimes."""
    folder = str(workshop.folder)
    missing = [m for m in PLANNED if not (workshop.folder / m / "calls.npz").exists()]
    if missing:
        workshop.run("--host", "reference.py", folder, *missing)
    workshop.run("--host", "plans.py", folder, *PLANNED)
    cells = [f"{name}:{model}" for model in PLANNED for name in PLANS]
    workshop.run("--device", "run.py", "etx", folder, *cells)
    workshop.run("--executorch", "run.py", "executorch", folder, *cells)
    return workshop


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("row", PLANNED)
def test_other_plans_run(row: str, name: str, runtime: str, planned: Workshop) -> None:
    folder = planned.folder / row
    error = folder / f"{name}.{runtime}.error"
    assert not error.exists(), error.read_text()
    expected, actual = np.load(folder / "calls.npz"), np.load(folder / f"{name}.{runtime}.npz")
    for call, (_, outputs) in enumerate(json.loads((folder / "calls.json").read_text())):
        for i in range(outputs):
            key = f"call{call}_output{i}"
            compare(actual[key], expected[key], key, ROWS[row].classes)


@pytest.mark.parametrize("row", PLANNED)
def test_other_plans_are_what_they_say(row: str, planned: Workshop) -> None:
    def read(name: str) -> ExecutionPlan:
        (method,) = read_pte(planned.folder / row / f"{name}.pte").program.execution_plan
        return method

    banks = read("banks")
    assert [size > 0 for size in banks.non_const_buffer_sizes[1:]] == [True, False, True]
    for name in PLANS[1:]:
        method = read(name)
        for what, indices in (("input", method.inputs), ("output", method.outputs)):
            tensors = [method.values[i].val for i in indices]
            owned = {t.allocation_info is None for t in tensors if isinstance(t, Tensor)}
            assert owned == {what in name}
