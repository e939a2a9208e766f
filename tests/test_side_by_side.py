# SPDX-License-Identifier: BSD-3-Clause
"""Commands run side by side, each one's output in one piece."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from side_by_side import run_all


def python(code: str) -> list[object]:
    return [sys.executable, "-c", code]


def test_outputs_stay_in_one_piece(capfd: pytest.CaptureFixture[str]) -> None:
    prints = "import sys; print('one', flush=True); print('two', file=sys.stderr)"
    failed = run_all({"a": python(prints), "b": python(prints), "c": python("exit(3)")})
    assert failed == ["c"]
    out = capfd.readouterr().out
    assert out.count("one\ntwo\n[a] passed") == out.count("one\ntwo\n[b] passed") == 1
    assert "[c] failed with exit code 3" in out


def test_they_run_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other's file."""
    waits = "import pathlib, sys, time; a, b = map(pathlib.Path, sys.argv[1:]); a.touch()\n"
    waits += "for _ in range(600): b.exists() and sys.exit(); time.sleep(0.1)\nsys.exit(1)"
    one, two = tmp_path / "one", tmp_path / "two"
    commands = {"1": [*python(waits), one, two], "2": [*python(waits), two, one]}
    assert run_all(commands, workers=2) == []


def test_they_share_the_cores(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = python("import os; print('threads:', os.environ['OMP_NUM_THREADS'])")
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert run_all({"a": command, "b": command}, workers=2) == []
    assert capfd.readouterr().out.count("threads: 3\n") == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert run_all({"a": command}) == []
    assert "threads: 5\n" in capfd.readouterr().out
