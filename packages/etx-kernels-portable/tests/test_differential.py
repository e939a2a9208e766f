# SPDX-License-Identifier: BSD-3-Clause
"""Random legal and odd calls of every kernel against eager.

`python -m differential --only SEED/INDEX` in this folder makes one of them again.
"""

from __future__ import annotations

import re

import pytest
from differential.calls import DRAWN, draw
from differential.known import ROWS, Row
from differential.operators import KERNELS
from differential.registry import DRAWINGS, UNDRAWN
from differential.run import calls, report, sweep
from harness import RECORDER

CALLS = 2_000


def test_kernels_compute_what_eager_does(request: pytest.FixtureRequest) -> None:
    summary = sweep(request.config.getoption("sweep_seed"), CALLS)
    assert summary.total == CALLS
    assert summary.failures() == []
    assert summary.outcomes["equal"] > CALLS * 3 // 4


def test_every_kernel_is_drawn_or_has_a_reason() -> None:
    assert {kernel.name for kernel in DRAWN} == set(DRAWINGS)
    assert {kernel.name for kernel in KERNELS} == set(DRAWINGS) | set(UNDRAWN)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_name_kernels_that_are_drawn(row: Row) -> None:
    assert any(re.fullmatch(row.kernels, kernel.name) for kernel in DRAWN)


@pytest.mark.parametrize("row", [r for r in ROWS if r.example], ids=lambda row: row.name)
def test_rare_rows_are_needed(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    assert row.example is not None
    name, seed, index = row.example
    if row.outcome == "aborted":
        (found,) = calls(seed, index, index + 1, name)
    else:
        monkeypatch.setattr(RECORDER, "record", lambda *_: None)
        call = draw(seed, index, name)
        call.run(lambda _: None)
        found = report(index, call)
    assert found.row == (row.name if row.is_seen_here else "")
    assert not found.unexplained
