# SPDX-License-Identifier: BSD-3-Clause
"""Memory plans: no live tensor is overwritten, and little memory is wasted."""

from __future__ import annotations

import random
import time

import pytest
from etx_exir.plan import ALGORITHMS, MemoryPlanningPass, by_size, no_reuse
from etx_exir.plan.algorithms import peak
from etx_exir.plan.liveness import intervals
from etx_exir.plan.planner import assign, make_blocks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_checker import Overlap, check
from random_methods import planned

SEPARATE = MemoryPlanningPass(memory_planning_algo=no_reuse, reuse_in_place=False)


def draws(seed):
    source = random.Random(seed)
    return source.randint


def coin(seed):
    source = random.Random(seed + 1)
    return lambda: source.random() < 0.5


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_no_live_tensor_is_overwritten(seed, length):
    method, _ = planned(draws(seed), length, MemoryPlanningPass())
    reference, _ = planned(draws(seed), length, SEPARATE)
    decide = coin(seed)
    for _ in range(4):
        check(method, reference, decide)


def test_the_checker_finds_an_overlap():
    found = 0
    for seed in range(20):
        method, _ = planned(draws(seed), 12, MemoryPlanningPass(reuse_in_place=False))
        reference, _ = planned(draws(seed), 12, SEPARATE)
        for value in method.values:
            info = getattr(value.val, "allocation_info", None)
            if info is not None:
                info.memory_offset_low = max(0, info.memory_offset_low - 16)
        try:
            check(method, reference, coin(seed))
        except (Overlap, AssertionError):
            found += 1
    assert found >= 15


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, no_reuse])
def test_every_algorithm_is_safe(algorithm):
    for seed in range(25):
        options = MemoryPlanningPass(memory_planning_algo=algorithm)
        method, _ = planned(draws(seed), 20, options)
        reference, _ = planned(draws(seed), 20, SEPARATE)
        check(method, reference, coin(seed))


def test_the_report_adds_up():
    for seed in range(30):
        _, report = planned(draws(seed), 30, MemoryPlanningPass())
        (arena,) = report.arenas
        assert arena.lower_bound <= arena.peak <= arena.total
        assert f"{arena.peak} bytes" in str(report)


@given(st.integers(0, 2**70))
def test_intervals_are_the_runs_of_ones(mask):
    rebuilt = 0
    for first, last in intervals(mask):
        assert first <= last
        rebuilt |= ((1 << (last - first + 1)) - 1) << first
    assert rebuilt == mask


def random_blocks(seed, count):
    source = random.Random(seed)
    sized = []
    for start in range(count):
        length = 1 + min(int(source.expovariate(0.3)), 40)
        sized.append((16 * source.randint(1, 4000), ((1 << length) - 1) << start))
    return make_blocks(sized, 16)


def test_blocks_in_conflict_are_apart():
    blocks, bound = random_blocks(3, 200)
    for algorithm in ALGORITHMS:
        offsets = algorithm(blocks)
        assert peak(blocks, offsets) >= bound
        for i, block in enumerate(blocks):
            for j in block.conflicts:
                assert offsets[i] + block.size <= offsets[j] or (
                    offsets[j] + blocks[j].size <= offsets[i]
                )


def test_planning_is_quick():
    sized = [(16 * (1 + i * 7919 % 4000), ((1 << (1 + i * 31 % 12)) - 1) << i) for i in range(500)]
    begin = time.perf_counter()
    blocks, bound = make_blocks(sized, 16)
    offsets = assign(blocks, bound, MemoryPlanningPass())
    seconds = time.perf_counter() - begin
    assert peak(blocks, offsets) <= 1.1 * bound
    assert seconds < 0.25, "50 ms on a quiet machine"


def test_a_custom_algorithm_is_used():
    seen = []

    def mine(blocks):
        seen.append(len(blocks))
        return by_size(blocks)

    planned(draws(1), 10, MemoryPlanningPass(memory_planning_algo=mine))
    assert seen[0] > 0
