# SPDX-License-Identifier: BSD-3-Clause
"""Random quantized models agree on all targets; `nox -s quantized-graphs` draws hundreds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("quantized_graphs.py")


def test_targets_agree(request: pytest.FixtureRequest) -> None:
    python = request.config.getoption("--both")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [python, "-W", "ignore", str(SCRIPT), "10", "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "10 models from seed 0, 0 findings" in done.stdout
