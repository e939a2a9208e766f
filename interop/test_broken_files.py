# SPDX-License-Identifier: BSD-3-Clause
"""Small files of ExecuTorch: what tests break is what it writes; broken ones end no process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import forked
import pytest

HERE = Path(__file__).parent
STORED = HERE.parent / "packages" / "etx-runtime" / "tests" / "executorch"


def call(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=HERE)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_stored_files_are_what_executorch_writes(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    forked.call(request.config, "--executorch", "small_files.py", tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in STORED.iterdir()}


def test_mutated_files_on_both_runtimes(request: pytest.FixtureRequest) -> None:
    sides = [request.config.getoption(side) for side in ("--device", "--executorch")]
    text = call(sys.executable, "mutated.py", *sides, 4)
    counts = {kind: int(n) for kind, n in re.findall(r"(\w+) +(\d+)", text.splitlines()[0])}
    assert (counts["crash"], counts["hang"]) == (0, 0), text
    assert counts["error"] > 0
    assert counts["same"] > 0, text
