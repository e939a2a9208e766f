# SPDX-License-Identifier: BSD-3-Clause
"""Both compilers and runtimes in one process, imported in either order."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import pytest
from forked import HERE, call, variables

SIDES = ("etx", "executorch")
NAMESPACE = "etx"


@pytest.fixture(scope="module")
def both(request, tmp_path_factory):
    """Run a script where both are installed; the answer is its last line."""
    python = request.config.getoption("--both")

    @cache
    def run(script: str, *arguments: str) -> Any:
        if script == "one_process.py":
            folder = tmp_path_factory.mktemp("both")
            printed = call(request.config, "--both", script, folder, *arguments)
        else:  # begins with no module of torch imported
            command = [python, "-W", "ignore", str(HERE / script), *arguments]
            done = subprocess.run(command, env=variables(), capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        return json.loads(printed.splitlines()[-1])

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
