# SPDX-License-Identifier: BSD-3-Clause
"""All values of a model of the set equal eager's, or are marked with a reason; no false alarm."""

from __future__ import annotations

import json
import os
import random
import subprocess
from typing import Any

import pytest
from forked import HERE, call, variables

QUICK = ("branch", "crepe", "lstm", "mask_head", "mobilenet_v3_small", "nested", "unet")
"""The other models take longer than a few seconds: `-s compared` has them all, by hand."""
SEED = int(os.environ.get("ETX_SEED", "0"))
VALUES_MB, BESIDE_MB, SECONDS = 52, 500, 10
TRIALS = 3
"""Other work on the machine makes CPU time longer."""
COMMANDS = (
    ("float", "branch"),
    ("float", "crepe"),
    ("float", "nested"),
    ("float", "unet"),
    ("int8", "unet"),
)


@pytest.mark.parametrize("drawn", [random.Random(SEED).choice(QUICK)])
def test_all_values_of_a_model(request: pytest.FixtureRequest, drawn: str) -> None:
    call(request.config, "--host", "compared.py", drawn)


def test_the_command_on_mobilenet_v2(request: pytest.FixtureRequest) -> None:
    """All of a process: Python, torch, the model, its export and all of its values."""
    command = [request.config.getoption("--host"), "-W", "ignore", HERE / "compared_command.py"]
    for _ in range(TRIALS):
        done = subprocess.run(
            [*command, "--json"], cwd=HERE, env=variables(), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        if found["cpu_seconds"] <= SECONDS:
            break
    assert found["results"] == found["compared"] == 99, found
    assert found["peak_mb"] <= VALUES_MB + BESIDE_MB, found
    assert found["cpu_seconds"] <= SECONDS, found


@pytest.mark.parametrize(("recipe", "drawn"), [random.Random(SEED).choice(COMMANDS)])
def test_every_command_on_a_model(request: pytest.FixtureRequest, recipe: str, drawn: str) -> None:
    """On kernels and on XNNPACK; `-s compared` has all models and recipes, by hand."""
    call(request.config, "--host", "commands_on.py", "--recipes", recipe, drawn)
