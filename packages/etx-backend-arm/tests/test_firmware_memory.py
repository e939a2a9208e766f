# SPDX-License-Identifier: BSD-3-Clause
"""What is said of scratch and stack holds for all kernels there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from etx_backend_arm.firmware import scratch
from etx_backend_arm.firmware.stack import POINTER, Function, bound
from etx_schema.errors import EtxError

KERNELS = Path(__file__).parents[1] / "native" / "cortex_m"


def test_each_family_that_allocates_has_a_rule() -> None:
    asking = [p for p in KERNELS.glob("*.cpp") if "allocate_temp" in p.read_text()]
    rows = re.compile(r'ETX_CORTEX_M_KERNEL\("([^"]+)"')
    names = {name for path in asking for name in rows.findall(path.read_text())}
    assert names
    assert names == scratch.RULES.keys()
    windows = re.findall(r"kWindows = (\d+);", (KERNELS / "conv2d.cpp").read_text())
    assert windows == [str(scratch.WINDOWS)]


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
    functions["deep"].calls.add("service")
    with pytest.raises(EtxError, match="no bound: deep, service call themselves"):
        bound(functions)
