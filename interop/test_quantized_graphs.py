# SPDX-License-Identifier: BSD-3-Clause
"""Random quantized models agree on all targets; `nox -s quantized-graphs` draws hundreds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("script", "count", "what"),
    [("quantized_graphs.py", 10, "models"), ("quantized_nets.py", 5, "nets")],
)
def test_targets_agree(script: str, count: int, what: str, request: pytest.FixtureRequest) -> None:
    python = request.config.getoption("--both")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [python, "-W", "ignore", str(HERE / script), str(count), "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert f"{count} {what} from seed 0, 0 findings" in done.stdout
