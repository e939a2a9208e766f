# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration backend, as one of others: two wheels, lowered by one, run by the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import ROOT, Environment, environment

DEMO = ROOT / "examples" / "demo-backend"
SCRIPTS = ("models.py", "lower.py", "run.py")


@pytest.fixture(scope="module")
def host() -> Environment:
    """Return a build host with the half that lowers."""
    return environment("demo-backend-host", "pointwise-aot", also=DEMO)


@pytest.fixture(scope="module")
def device() -> Environment:
    """Return a device with the half that runs."""
    names = ("pointwise-runtime", "etx-kernels-portable")
    return environment("demo-backend-device", *names, also=DEMO)


@pytest.fixture(scope="module")
def both() -> Environment:
    """Return a build host that runs what it lowers, and compares it."""
    names = ("pointwise-aot", "pointwise-runtime", "etx-kernels-portable")
    return environment("demo-backend-both", *names, "etx-devtools[run,aot]", also=DEMO)


def test_what_one_half_lowers_the_other_runs(
    host: Environment, device: Environment, tmp_path: Path
) -> None:
    for script in SCRIPTS:
        (tmp_path / script).write_text((DEMO / script).read_text())
    lowered = host.run("python", "lower.py", "programs", cwd=tmp_path)
    assert lowered.returncode == 0, lowered.stdout + lowered.stderr
    assert "chain: 10 operators in 1" in lowered.stdout
    assert not {"torch", "etx-exir"} & device.installed()
    ran = device.run("python", "run.py", "programs", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "15 outputs equal eager mode's" in ran.stdout
    counts = re.search(r"(\d+) refused, (\d+) ran", ran.stdout)
    assert counts, ran.stdout
    assert min(int(counts[1]), int(counts[2])) > 50, ran.stdout


def test_faults_inside_of_its_delegates_are_found(both: Environment, tmp_path: Path) -> None:
    """By bisection, in no more than log2(n) + 1 compilations, and by delegates that tell all.

    The search is replayed from its log.
    """
    for script in ("models.py", "find_fault.py"):
        (tmp_path / script).write_text((DEMO / script).read_text())
    done = both.run("python", "find_fault.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "chain: aten.relu.default is wrong" in done.stdout
    assert re.search(r"by the command: aten.relu.default, \d compilations, replayed 0", done.stdout)


def test_the_pages_run(host: Environment, device: Environment) -> None:
    host.python(ROOT / "tools" / "snippets.py", DEMO / "pointwise-aot" / "README.md")
    device.python(ROOT / "tools" / "snippets.py", DEMO / "pointwise-runtime" / "README.md")
