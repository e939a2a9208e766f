# SPDX-License-Identifier: BSD-3-Clause
"""What is said of scratch and stack holds for all kernels there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from etx_backend_arm.firmware import scratch
from etx_backend_arm.firmware.scratch import Place, Scratch
from etx_backend_arm.firmware.stack import POINTER, Function, bound
from etx_schema._generated.program import Chain, ExecutionPlan, Instruction
from etx_schema.errors import EtxError
from etx_schema.inspect.arenas import Allocation, Arena
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KERNELS = Path(__file__).parents[1] / "native" / "cortex_m"


def test_each_family_that_allocates_has_a_rule() -> None:
    asking = [p for p in KERNELS.glob("*.cpp") if "allocate_temp" in p.read_text()]
    rows = re.compile(r'ETX_CORTEX_M_KERNEL\("([^"]+)"')
    names = {name for path in asking for name in rows.findall(path.read_text())}
    assert names
    assert names == scratch.RULES.keys()
    windows = re.findall(r"kWindows = (\d+);", (KERNELS / "conv2d.cpp").read_text())
    assert windows == [str(scratch.WINDOWS)]


def arena(*live: tuple[int, int, int, int]) -> Arena:
    """Return an arena of 4,096 bytes with tensors of (start, end, first step, last step)."""
    found = [
        Allocation(i, 1, start, end, first, last, "", "intermediate", "", "", "", "int8", (), 0)
        for i, (start, end, first, last) in enumerate(live)
    ]
    return Arena(1, 4096, [], found)


def plan(*calls: Scratch) -> ExecutionPlan:
    """Return a method of these calls, which `call_temporary` is made to know."""
    found = ExecutionPlan()
    found.chains = [Chain(instructions=[Instruction() for _ in calls])]
    return found


def place(monkeypatch: pytest.MonkeyPatch, live: Arena, *calls: Scratch) -> list[Place]:
    monkeypatch.setattr(scratch, "call_temporary", lambda _: dict(enumerate(calls)))
    return scratch.place_temporary(plan(*calls), live)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_scratch_meets_nothing_that_is_live(
    monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    steps = data.draw(st.integers(1, 5))
    step = st.integers(0, steps + 1)
    rows = data.draw(st.lists(st.tuples(st.integers(0, 250), st.integers(1, 90), step, step)))
    live = arena(
        *((at * 16, min(at * 16 + size * 16, 4096), *sorted((a, b))) for at, size, a, b in rows)
    )
    sizes = st.lists(st.integers(0, 900), max_size=2)
    calls = [Scratch("", data.draw(sizes), data.draw(st.integers(0, 300))) for _ in range(steps)]
    for i, (call, where) in enumerate(zip(calls, place(monkeypatch, live, *calls), strict=True)):
        assert where.at % scratch.ALIGNMENT == 0
        assert call.size(1) <= where.size <= call.size()
        for each in live.allocations:
            if each.first <= i + 1 <= each.last:
                assert each.end <= where.at or where.at + where.size <= each.start or not where.size


def test_a_convolution_takes_fewer_windows_before_the_arena_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = Scratch("", [64], 144)
    full, free = arena((0, 4096, 0, 3)), arena((0, 4096 - 1280, 0, 3))
    assert place(monkeypatch, full, call) == [Place(4096, 64 + 144)]
    assert place(monkeypatch, free, call) == [Place(4096 - 1280, 64 + 8 * 144)]


def image(**calls: tuple[int, list[str], bool]) -> dict[str, Function]:
    return {n: Function(n, frame, set(to), held) for n, (frame, to, held) in calls.items()}


def test_a_bound_follows_calls_and_pointers() -> None:
    kernel = "_ZN3etx5BoxedK"
    functions = image(
        reset=(8, ["main"], True),
        main=(100, ["leaf", POINTER], False),
        leaf=(900, [], False),
        service=(40, ["deep"], True),
        deep=(4, [], False),
    )
    functions[kernel] = Function(kernel, 1000, {POINTER}, True)
    stack = bound(functions)
    assert stack.size == 8 + 100 + 1000 + 40 + 4
    assert [name for name, _ in stack.path] == ["reset", "main", kernel, "service", "deep"]
    sort = "_ZSt16__introsort_loopIP1TEvT_S2_i"
    functions["leaf"].calls.add(sort)
    functions[sort] = Function(sort, 60, {sort}, False)
    assert bound(functions, 1000).size == 8 + 100 + 900 + 60 * (2 * 10 + 1)
    functions["deep"].calls.add("service")
    with pytest.raises(EtxError, match="no bound: deep, service call themselves"):
        bound(functions)
