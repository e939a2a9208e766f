# SPDX-License-Identifier: BSD-3-Clause
"""Both compilers and runtimes in one process, imported in either order."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SIDES = ("etx", "executorch")
NAMESPACE = "etx"


@pytest.fixture(scope="module")
def both(request, tmp_path_factory):
    """Run a script where both are installed; the answer is its last line."""
    python = request.config.getoption("--both")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    @cache
    def run(script: str, *arguments: str) -> Any:
        folder = [str(tmp_path_factory.mktemp("both"))] if script == "one_process.py" else []
        command = [python, "-W", "ignore", HERE / script, *folder, *arguments]
        done = subprocess.run(
            [str(item) for item in command], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize("order", [SIDES, SIDES[::-1]], ids="-".join)
def test_files_cross_in_one_process(both, order):
    """And each compiler writes the bytes that it writes where the other is not imported."""
    found = both("one_process.py", *order)
    assert found == both("one_process.py", "etx") | both("one_process.py", "executorch")


@pytest.mark.parametrize("side", SIDES)
def test_what_the_other_side_registers_too(both, side):
    mine, theirs = both("registered.py", side), both("registered.py", *set(SIDES) - {side})
    for registry, found in mine.items():
        assert not set(found["added"]) & set(theirs[registry]["added"]), registry


def test_nothing_of_torch_is_replaced(both):
    found = both("registered.py", "etx")
    assert {registry: names["replaced"] for registry, names in found.items()} == {
        registry: [] for registry in found
    }


def test_operators_have_a_namespace_of_their_own(both):
    added = both("registered.py", "etx")["operators"]["added"]
    assert added
    assert [name for name in added if not name.startswith(NAMESPACE)] == []


def test_names_of_the_port_are_executorchs(both):
    """And what ExecuTorch has beside them is refused in one sentence."""
    found = both("port_tree.py")
    assert found["sentences"] > 0
    assert (found["unknown"], found["errors"]) == ([], [])
