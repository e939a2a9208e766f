# SPDX-License-Identifier: BSD-3-Clause
"""What excuses a sample of the conformance run excuses nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> dict[str, dict[str, bool]]:
    script = Path(__file__).with_name("judged.py")
    command = [request.config.getoption("--host"), script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(said)


@pytest.mark.parametrize("judge", ["rounded", "near", "ties"])
def test_each_verdict(judge: str, verdicts: dict[str, dict[str, bool]]) -> None:
    said = verdicts[judge]
    assert {name: yes for name, yes in said.items() if yes == name.startswith("not: ")} == {}
    assert len(set(said.values())) == 2
