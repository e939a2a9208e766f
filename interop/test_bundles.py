# SPDX-License-Identifier: BSD-3-Clause
"""Bundled programs go both ways: the same bytes, and the same verdicts on all of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SIDES = ("etx", "executorch")


@pytest.mark.parametrize("order", [SIDES, SIDES[::-1]], ids="-".join)
def test_bundles_cross(order, request, tmp_path):
    python = request.config.getoption("--both")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [python, "-W", "ignore", str(HERE / "bundles.py"), str(tmp_path), *order]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(set(found["digests"].values())) == 1
    assert len(found["verdicts"]) == 4
    assert set(map(tuple, found["verdicts"].values())) == {(True, False, False)}
