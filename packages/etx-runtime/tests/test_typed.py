# SPDX-License-Identifier: BSD-3-Clause
"""The program whose types are checked strictly does what it says."""

from __future__ import annotations

from etx_runtime import Runtime
from programs import counter
from typed.program import count


def test_the_typed_program_runs(runtime: Runtime) -> None:
    assert count(counter())["count"].tolist() == [1.0]
