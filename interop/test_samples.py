# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's samples that target `executorch` accepts run on ExecuTorch and give what eager gives.

A part, drawn by ETX_SEED; `nox -s executorch-samples` runs all.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DIES = """
import json, os, sys
for i in range(int(sys.argv[2]) + 1, 4):
    print(json.dumps([i, "begun", ""]), flush=True)
    if i == 1:
        os.abort()
    print(json.dumps([i, "same", ""]), flush=True)
    if i == 2:
        os.abort()
"""

DRAWN = 16
SEED = os.environ.get("ETX_SEED", "0")


def test_drawn_samples_run_there(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    sides = [request.config.getoption(side) for side in ("--host", "--executorch")]
    script = Path(__file__).parent / "opinfo" / "run.py"
    command = [sys.executable, script, *sides, tmp_path, "--workers", "1", "--seed", SEED]
    drawn = ["--drawn", str(DRAWN), "--dtypes", "float32", "int64", "bool"]
    done = subprocess.run([*command, *drawn], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ETX_SEED={SEED}: {done.stdout}{done.stderr[-2000:]}"
    assert f"{DRAWN} samples" in done.stdout


def test_a_sample_that_ends_the_process_is_found_and_the_rest_runs(tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text(DIES)
    run = runpy.run_path(str(Path(__file__).parent / "opinfo" / "run.py"))["run"]
    said = run(sys.executable, script)
    happened = {i: said[i][-1][0] for i in said}
    assert happened == {0: "same", 1: "ended the process", 2: "same", 3: "same"}
