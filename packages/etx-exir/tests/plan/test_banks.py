# SPDX-License-Identifier: BSD-3-Clause
"""Memories of limited size: pins are kept, what is used least is spilled, errors say what lacks."""

from __future__ import annotations

import json
import random

import pytest
import torch
from etx_exir import Bank, ExecutorchBackendConfig, MemoryPlanningPass, Pin, TargetMemoryMap
from etx_exir.emit import emit, emit_all
from etx_exir.errors import ConfigError, PlanError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreter import Method
from memory_checker import check
from random_methods import SEPARATE, coin, draws, planned
from running import assert_same, edge, plan_of, reread
from torch import nn


class Tower(nn.Module):
    """Narrow and wide layers in turn: 4 kB and 64 kB of results."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(64, 1024)
        self.narrow = nn.Linear(1024, 64)

    def forward(self, x):
        for _ in range(3):
            x = self.narrow(torch.relu(self.wide(x))) + x
        return x


INPUTS = (torch.randn(16, 64),)


def lowered(banks, pins=(), **options):
    planning = MemoryPlanningPass(memory_map=TargetMemoryMap(banks, pins), **options)
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    return emit_all({"forward": edge(Tower(), INPUTS)}, config)


def arenas(emitted):
    return plan_of(emitted.pte).non_const_buffer_sizes[1:]


def placed(emitted):
    """Return (memory id, bytes) of the planned tensors."""
    tensors = [v.val for v in plan_of(emitted.pte).values if hasattr(v.val, "dim_order")]
    found = [t for t in tensors if t.allocation_info is not None]
    return [(t.allocation_info.memory_id, 4 * torch.Size(t.sizes).numel()) for t in found]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(1, 60), st.integers(1, 150))
def test_random_methods_on_random_banks(seed, length, small, large):
    source = random.Random(seed)
    banks = [Bank("SRAM", 16 * small, source.choice((1, 3))), Bank("DRAM", 16 * large, 2)]
    modulus = source.randint(2, 9)
    pins = [
        Pin("SRAM", when=lambda t: t.nbytes % modulus == 0 and t.kind != "state"),
        Pin("DRAM", kind="state"),
    ]
    memory_map = TargetMemoryMap(banks, pins[source.randint(0, 2) :])
    try:
        method, report = planned(draws(seed), length, MemoryPlanningPass(memory_map=memory_map))
    except PlanError:
        return
    for bank in banks:
        assert method.non_const_buffer_sizes[bank.mem_id] <= bank.size
        assert str(bank.size) in str(report)
    reference, _ = planned(draws(seed), length, SEPARATE)
    for _ in range(3):
        check(method, reference, coin(seed))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32), st.integers(1, 25), st.integers(1, 60))
def test_a_plan_is_always_found_when_the_last_bank_has_no_limit(seed, length, small):
    memory_map = TargetMemoryMap([Bank("SRAM", 16 * small, 1), Bank("DRAM", None, 2)])
    method, _ = planned(draws(seed), length, MemoryPlanningPass(memory_map=memory_map))
    reference, _ = planned(draws(seed), length, SEPARATE)
    check(method, reference, coin(seed))


def test_one_bank_that_holds_everything_is_the_plan_without_a_map():
    plain = emit({"forward": edge(Tower(), INPUTS)}, ExecutorchBackendConfig())
    mapped = lowered([Bank("SRAM", 1 << 20, 1), Bank("DRAM", None, 2)])
    assert arenas(mapped) == [*plan_of(plain).non_const_buffer_sizes[1:], 0]


def test_wide_tensors_are_spilled():
    emitted = lowered([Bank("SRAM", 16 << 10, 1), Bank("DRAM", None, 2)])
    assert {memory_id for memory_id, nbytes in placed(emitted) if nbytes == 65536} == {2}
    assert {memory_id for memory_id, nbytes in placed(emitted) if nbytes == 4096} == {1}
    sram, dram = emitted.reports["forward"].arenas
    assert (sram.bank, sram.capacity, sram.peak) == ("SRAM", 16 << 10, arenas(emitted)[0])
    assert sram.spilled == dram.tensors > 0
    assert sram.spilled_bytes == dram.total
    assert "tensors of 196608 bytes spilled" in str(sram)


def test_the_file_with_two_arenas_computes_what_eager_does():
    module = Tower()
    planning = MemoryPlanningPass(
        memory_map=TargetMemoryMap([Bank("SRAM", 16 << 10, 1), Bank("DRAM", None, 3, 64)])
    )
    config = ExecutorchBackendConfig(memory_planning_pass=planning)
    pte = reread(emit({"forward": edge(module, INPUTS)}, config))
    assert [size > 0 for size in plan_of(pte).non_const_buffer_sizes] == [False, True, False, True]
    for _ in range(2):
        given_ = torch.randn(16, 64)
        assert_same(Method(pte).execute(given_), [module(given_)])


@pytest.mark.parametrize(
    ("pin", "ids"),
    [
        (Pin("DRAM", kind="input"), {2}),
        (Pin("DRAM", name="x"), {2}),
        (Pin("DRAM", name="y"), set()),
        (Pin("DRAM", when=lambda t: t.kind == "input" and t.sizes == (16, 64)), {2}),
    ],
)
def test_inputs_are_pinned(pin, ids):
    banks = [Bank("SRAM", 1 << 20, 1), Bank("DRAM", None, 2)]
    if not ids:
        with pytest.raises(ConfigError, match="no planned tensor of any method matches"):
            lowered(banks, [pin])
        return
    emitted = lowered(banks, [pin])
    plan = plan_of(emitted.pte)
    assert {plan.values[i].val.allocation_info.memory_id for i in plan.inputs} == ids


def test_tensors_are_pinned_by_operator_and_by_module():
    banks = [Bank("SRAM", 1 << 20, 1), Bank("DRAM", None, 2)]
    for pin in (Pin("DRAM", op="aten::linear*", module="wide"), Pin("DRAM", module="wi*")):
        emitted = lowered(banks, [pin])
        by_id = dict.fromkeys((1, 2), 0)
        for memory_id, nbytes in placed(emitted):
            by_id[memory_id] += nbytes == 65536
        assert by_id[2] >= 3, "the results of wide, and what lies in their memory"
        assert arenas(emitted)[1] >= 65536


def test_what_does_not_fit_is_said():
    with pytest.raises(PlanError) as error:
        lowered([Bank("SRAM", 8 << 10, 1), Bank("DRAM", 60_000, 2)])
    text = str(error.value)
    assert "bank 'DRAM' (id 2) is too small" in text
    assert "take 65,536 of 60,000 bytes: 5,536 bytes are missing" in text
    assert "At instruction 0 (aten::linear.out, wide, test_banks.py:" in text
    assert "linear: float32[16, 1024], 65,536 bytes (aten::linear.out, wide" in text
    assert "SRAM: 8,192 bytes, DRAM: 60,000 bytes" in text


def test_pins_that_do_not_fit_are_said():
    with pytest.raises(PlanError) as error:
        lowered([Bank("SRAM", 8 << 10, 1), Bank("DRAM", None, 2)], [Pin("SRAM", module="wide")])
    text = str(error.value)
    assert "tensors pinned there take 65,536 of 8,192 bytes: 57,344 bytes are missing" in text
    assert "unpin some of them" in text


def test_a_spilled_bank_uses_its_bytes_before_the_next_one_overflows():
    """64 kB in DRAM only if SRAM holds all of the rest."""
    emitted = lowered([Bank("SRAM", 8 << 10, 1), Bank("DRAM", 64 << 10, 2)])
    assert arenas(emitted) == [8 << 10, 64 << 10]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TargetMemoryMap([]), "at least one bank"),
        (lambda: Bank("SRAM", 0, 1), "expected a size of 1 byte or more, got 0"),
        (lambda: Bank("SRAM", 10, 0), "expected a mem_id of 1 or more, got 0"),
        (lambda: Bank("SRAM", 10, 1, 3), "expected a power of two"),
        (lambda: TargetMemoryMap([Bank("A", 1, 1), Bank("A", 1, 2)]), "must be unique"),
        (lambda: TargetMemoryMap([Bank("A", 1, 1), Bank("B", 1, 1)]), "must be unique"),
        (lambda: TargetMemoryMap([Bank("A", 1, 1)], [Pin("B", op="x")]), "no bank 'B'.*banks: A"),
        (lambda: Pin("A"), "says nothing of the tensors"),
        (lambda: Pin("A", kind="weight"), "expected 'input'"),
        (
            lambda: MemoryPlanningPass(
                share_mutable_buffers=True, memory_map=TargetMemoryMap([Bank("A", 1, 2)])
            ),
            "gives to a bank",
        ),
    ],
)
def test_maps_that_make_no_sense(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_map_in_a_file(tmp_path):
    path = tmp_path / "board.json"
    row = {"name": "SRAM", "size": 1 << 20, "mem_id": 1}
    last = {"name": "DRAM", "size": None, "mem_id": 3, "alignment": 64}
    pins = [{"bank": "DRAM", "kind": "input"}]
    path.write_text(json.dumps({"banks": [row, last], "pins": pins}))
    read = TargetMemoryMap.load(path)
    assert read.banks == (Bank("SRAM", 1 << 20, 1), Bank("DRAM", None, 3, 64))
    assert read.pins == (Pin("DRAM", kind="input"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "at least one bank"),
        ("3", "expected an object with 'banks'"),
        ('{"banks": [{"name": "A"}]}', "missing 2 required"),
        ('{"banks": [{"name": "A", "size": "1 MB", "mem_id": 1}]}', "size='1 MB'"),
        ('{"banks": [{"name": "A", "size": 1, "mem_id": 1, "speed": 2}]}', "speed"),
        ('{"bank": []}', "unknown keys bank"),
    ],
)
def test_a_file_that_is_no_map(text, message, tmp_path):
    (tmp_path / "board.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        TargetMemoryMap.load(tmp_path / "board.json")


def test_a_map_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the memory map"):
        TargetMemoryMap.load(tmp_path / "board.json")


def test_memories_in_a_word():
    found = TargetMemoryMap.parse("dtcm:64K, sram:0x1000,dram")
    assert found.banks == (Bank("dtcm", 65536, 1), Bank("sram", 4096, 2), Bank("dram", None, 3))
    with pytest.raises(ConfigError, match="size='64 cats': expected bytes"):
        TargetMemoryMap.parse("dtcm:64 cats")


def test_a_board_s_file_has_banks_that_are_not_planned(tmp_path):
    banks = [
        {"name": "flash", "origin": 0, "size": "256K"},
        {"name": "ram", "origin": "0x20000000", "size": "16K", "mem_id": 1},
    ]
    path = tmp_path / "board.json"
    path.write_text(json.dumps({"machine": "microbit", "banks": banks}))
    assert TargetMemoryMap.load(path).banks == (Bank("ram", 16384, 1),)
    banks[1]["size"] = "16 K"
    path.write_text(json.dumps({"banks": banks}))
    with pytest.raises(ConfigError, match="size='16 K': expected bytes"):
        TargetMemoryMap.load(path)
