# SPDX-License-Identifier: BSD-3-Clause
"""Planning as the caller asks for it: algorithms, alignment, inputs, outputs and state."""

from __future__ import annotations

import pytest
import torch
from etx_exir import ExecutorchBackendConfig
from etx_exir.emit import emit
from etx_exir.errors import ConfigError, PlanError
from etx_exir.plan import (
    ALGORITHMS,
    MemoryPlanningAlgorithmSuite,
    MemoryPlanningPass,
    greedy,
    naive,
    place,
)
from etx_schema.inspect.memory import memory_of
from memory_checker import check
from random_methods import SEPARATE, coin, draws, planned
from running import edge, plan_of, reread, run
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("seen", torch.ones(8))

    def forward(self, x):
        y = torch.relu(self.layer(x) @ x)
        self.seen.add_(y[0])
        return y + self.seen, x.softmax(0)


def late_first(blocks):
    """Place what dies last first."""
    return place(blocks, sorted(range(len(blocks)), key=lambda i: (-blocks[i].last, i)))


def with_planning(**options):
    return ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(**options))


def net():
    return edge(Net(), (torch.randn(8, 8),))


@pytest.mark.parametrize(
    "algorithm",
    [late_first, naive, MemoryPlanningAlgorithmSuite([naive, greedy]), *ALGORITHMS],
)
def test_any_algorithm_gives_a_safe_plan(algorithm):
    for seed in range(10):
        method, _ = planned(draws(seed), 20, MemoryPlanningPass(memory_planning_algo=algorithm))
        reference, _ = planned(draws(seed), 20, SEPARATE)
        check(method, reference, coin(seed))


def test_a_suite_keeps_the_smallest():
    sizes = {}
    for name, algorithm in (
        ("naive", naive),
        ("greedy", greedy),
        ("suite", MemoryPlanningAlgorithmSuite(algo_list=[naive, greedy])),
    ):
        pte = emit({"forward": net()}, with_planning(memory_planning_algo=algorithm))
        sizes[name] = plan_of(pte).non_const_buffer_sizes[1]
    assert sizes["suite"] == sizes["greedy"] < sizes["naive"]


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (lambda blocks: [0] * len(blocks), "overlaps block"),
        (lambda blocks: [0], "gave 1 offsets for"),
        (lambda blocks: [-16, *naive(blocks)[1:]], r"at -16; expected a multiple of 16"),
        (lambda blocks: [8 + at for at in naive(blocks)], "expected a multiple of 16"),
        (lambda blocks: [float(at) for at in naive(blocks)], "at 0.0; expected"),
    ],
)
def test_a_wrong_algorithm_is_refused(algorithm, message):
    with pytest.raises(PlanError, match=message):
        emit({"forward": net()}, with_planning(memory_planning_algo=algorithm))


def test_the_error_names_the_tensors():
    with pytest.raises(PlanError) as error:
        emit({"forward": net()}, with_planning(memory_planning_algo=lambda b: [0] * len(b)))
    assert "'<lambda>' put block 0 (seen, 32 bytes) at 0" in str(error.value)
    assert "overlaps block 1 (x, 256 bytes at 0)" in str(error.value)


def test_alignment():
    pte = emit({"forward": net()}, with_planning(alignment=64))
    infos = [v.val.allocation_info for v in plan_of(pte).values if hasattr(v.val, "dim_order")]
    assert all(i.memory_offset_low % 64 == 0 for i in infos if i is not None)


@pytest.mark.parametrize("inputs", [True, False])
@pytest.mark.parametrize("outputs", [True, False])
def test_inputs_and_outputs_in_or_out_of_the_plan(inputs, outputs):
    options = {"alloc_graph_input": inputs, "alloc_graph_output": outputs}
    planning = MemoryPlanningPass(**options)
    result = run(Net(), *[(torch.randn(8, 8),) for _ in range(3)], planning=planning)
    plan = plan_of(result.pte)

    def has_memory(indices):
        return {plan.values[i].val.allocation_info is not None for i in indices}

    assert has_memory(plan.inputs) == {inputs}
    assert has_memory(plan.outputs) == {outputs}


def test_state_can_be_left_to_the_caller():
    pte = reread(emit({"forward": net()}, with_planning(alloc_mutable_buffers=False)))
    (state,) = [
        v.val
        for v in plan_of(pte).values
        if getattr(getattr(v.val, "extra_tensor_info", None), "fully_qualified_name", "") == "seen"
    ]
    assert state.allocation_info is None
    assert state.data_buffer_idx == 0
    assert pte.mutable_data == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alignment": 24}, "alignment 24; expected a power of two"),
        ({"memory_planning_algo": [greedy]}, "expected a function from blocks to offsets"),
        ({"allow_lifetime_and_storage_overlap": True}, "every plan is checked"),
        ({"share_mutable_buffers": True, "alloc_mutable_buffers": False}, "needs alloc_mutable"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ConfigError, match=message):
        MemoryPlanningPass(**options)


def test_planners_by_method():
    programs = {"one": net(), "two": net()}
    chosen = {"one": MemoryPlanningPass(memory_planning_algo=naive, reuse_in_place=False)}
    pte = emit(programs, ExecutorchBackendConfig(memory_planning_pass=chosen))
    one, two = (plan_of(pte, name).non_const_buffer_sizes[1] for name in ("one", "two"))
    assert one > two
    config = ExecutorchBackendConfig(memory_planning_pass={"three": MemoryPlanningPass()})
    with pytest.raises(ConfigError, match="no method three; methods: one, two"):
        emit(programs, config)
    with pytest.raises(ConfigError, match=r"expected an etx_exir.MemoryPlanningPass.*got str"):
        emit(programs, ExecutorchBackendConfig(memory_planning_pass="greedy"))


class Gates(nn.Module):
    """The rows of one product are used up one after the other."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 64)

    def forward(self, x):
        return [part.reshape(8, 8).softmax(0) for part in self.layer(x).unbind(0)]


def test_memory_of_rows_that_were_read_is_used_again():
    """Results (2 kB) take the place of the product's rows (2 kB); one row is read meanwhile."""
    result = run(Gates(), *[(torch.randn(8, 16),) for _ in range(2)])
    arena = result.reports["forward"].arenas[0]
    ((method,),) = [found.arenas for found in memory_of(result.pte)]
    assert arena.peak == arena.lower_bound == method.size == method.largest_live_set
    assert plan_of(result.pte).non_const_buffer_sizes[1] == 2048 + 512
