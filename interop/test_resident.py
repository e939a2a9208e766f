# SPDX-License-Identifier: BSD-3-Clause
"""Resident memory of the model set: the weights where they lie in the file, planned memory, and
3 MB for everything else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import HERE, Workshop
from names import ROWS

OWN_KB = 3 * 1024


@pytest.mark.xfail(
    not Path("/proc/self/smaps").exists(),
    reason="the operating system does not account for mappings",
    strict=True,
)
def test_resident_memory(model: str, workshop: Workshop, pytestconfig: pytest.Config) -> None:
    folder = workshop.folder / model
    files = [folder / name for name in (f"{ROWS[model].file}.pte", "calls.npz", "calls.json")]
    command = [pytestconfig.getoption("--device"), HERE / "resident.py", *files]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kb = json.loads(done.stdout)
    assert kb["dirty"] == 0
    assert kb["grown"] <= kb["planned"] + kb["scratch"] + kb["file"] + OWN_KB, kb
