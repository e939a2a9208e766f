# SPDX-License-Identifier: BSD-3-Clause
"""Our kernels of ``cortex_m::`` compute what ExecuTorch's definitions in Python do, bit by bit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parent / "cortex_m.py"
EXAMPLES = 12
OPERATORS = 23


def test_drawn_calls_give_the_same_bits(request):
    python = request.config.getoption("--both")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [python, "-W", "ignore", str(SCRIPT), str(EXAMPLES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == OPERATORS
    for name, row in found.items():
        assert row["ran"] >= EXAMPLES, (name, row)
        assert row["undefined"] == 0, (name, row)
        assert not row["differ"], (name, row)
