# SPDX-License-Identifier: BSD-3-Clause
"""Memory plans: no live tensor is overwritten, and little memory is wasted."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import pytest
from etx_exir.plan import ALGORITHMS, MemoryPlanningPass, greedy, naive
from etx_exir.plan.algorithms import peak
from etx_exir.plan.blocks import assign, make_blocks, whole
from etx_exir.plan.liveness import Part, intervals
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_checker import Overlap, Walk, check
from random_methods import SEPARATE, coin, draws, planned


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_no_live_tensor_is_overwritten(seed, length):
    method, _ = planned(draws(seed), length, MemoryPlanningPass())
    reference, _ = planned(draws(seed), length, SEPARATE)
    decide = coin(seed)
    for _ in range(4):
        check(method, reference, decide)


class Trace(Walk):
    """A walk that remembers reads and writes in the order in which they happen."""

    def __init__(self, *args):
        self.events = []
        self.at = None
        super().__init__(*args)

    def step(self, call, at):
        self.at = at
        return super().step(call, at)

    def write(self, index):
        self.events.append(("write", index, self.at))
        super().write(index)

    def also(self, target, source):
        self.events.append(("write", target, self.at))
        super().also(target, source)

    def read(self, index, at):
        self.events.append(("read", index, self.at))
        super().read(index, at)


def overwrites(trace):
    """Yield (v, u): v is written, then u of another group, then v is read."""
    written, over = {}, {}
    for kind, index, at in trace.events:
        if index not in trace.spans:
            continue
        if kind == "read":
            for other in over.get(index, ()):
                yield index, other
            continue
        copies = at is not None and "copy" in kernel(trace.reference, at)
        for earlier in written:
            if not copies and trace.groups[earlier] != trace.groups[index]:
                over.setdefault(earlier, set()).add(index)
        written[index] = True
        over.pop(index, None)


def kernel(method, at):
    call = method.chains[0].instructions[at].instr_args
    return method.operators[call.op_index].name if hasattr(call, "op_index") else ""


def test_the_checker_finds_a_tensor_moved_onto_one_that_is_written_during_its_life():
    tried = 0
    for seed in range(40):
        method, _ = planned(draws(seed), 14, MemoryPlanningPass())
        reference, _ = planned(draws(seed), 14, SEPARATE)
        trace = Trace(method, reference, coin(seed))
        trace.execute()
        for victim, other in sorted(set(overwrites(trace)))[:30]:
            moved = copy.copy(method.values[victim])
            place = copy.copy(method.values[other].val.allocation_info)
            moved.val = replace(moved.val, allocation_info=place)
            values = [*method.values[:victim], moved, *method.values[victim + 1 :]]
            sizes = [0, *([1 << 20] * 3)]
            broken = replace(method, values=values, non_const_buffer_sizes=sizes)
            walk = Walk(broken, reference, coin(seed))
            with pytest.raises(Overlap):
                walk.execute()
            tried += 1
    assert tried >= 400


def test_the_checker_finds_a_tensor_that_ends_outside_of_its_arena():
    method, _ = planned(draws(3), 12, MemoryPlanningPass())
    reference, _ = planned(draws(3), 12, SEPARATE)
    method.non_const_buffer_sizes[1] -= 16
    with pytest.raises(AssertionError, match="within its arena"):
        check(method, reference, coin(3))


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, naive])
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
    return make_blocks([whole(nbytes, mask, 16) for nbytes, mask in sized])


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


def test_hundreds_of_blocks_come_near_the_bound():
    sized = [(16 * (1 + i * 7919 % 4000), ((1 << (1 + i * 31 % 12)) - 1) << i) for i in range(500)]
    blocks, bound = make_blocks([whole(nbytes, mask, 16) for nbytes, mask in sized])
    offsets, _ = assign(blocks, bound, MemoryPlanningPass())
    assert peak(blocks, offsets) <= 1.1 * bound


def test_blocks_that_are_all_alive_at_once_are_stacked_unasked():
    """As are thousands of outputs, whose pairs would take seconds to write down."""
    sized = [(16 * (1 + i * 7919 % 40), 0b11 << (i % 2)) for i in range(300)]
    blocks, bound = make_blocks([whole(nbytes, mask, 16) for nbytes, mask in sized])
    offsets, needed = assign(blocks, bound, MemoryPlanningPass())
    assert "_rows" not in vars(blocks[0].meeting)
    assert needed == bound == sum(nbytes for nbytes, _ in sized)
    assert offsets == greedy(blocks)
    assert all(len(block.conflicts) == 299 for block in blocks)


def test_parts_of_two_blocks_may_overlap():
    """The second lies in the first half of the first, which has ended."""
    blocks, bound = make_blocks([[Part(0, 32, 0b001), Part(32, 64, 0b111)], [Part(0, 32, 0b010)]])
    assert (blocks[0].first, blocks[0].last, blocks[1].first) == (0, 2, 1)
    assert (blocks[0].conflicts, blocks[0].apart) == ([1], [[(0, 64)]])
    assert (blocks[1].conflicts, blocks[1].apart) == ([0], [[(-64, 0)]])
    assert (greedy(blocks), bound) == ([0, 0], 64)
