# SPDX-License-Identifier: BSD-3-Clause
"""The device installation: small, on every interpreter that is found, with its command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, Environment, environment

from projects import load_projects

BUDGET = 5_000_000
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
DEVICE = ("etx-runtime", "etx-kernels-portable")
RUN = """
import sys
import etx_runtime
import numpy as np
model = etx_runtime.load(sys.argv[1])
for n in (8, 3):
    x = np.arange(n, dtype=np.float32)
    assert np.array_equal(model(x, x), x + x)
"""
RUN_TORCH = """
import sys
import etx_runtime
import numpy as np
model = etx_runtime.load(sys.argv[1])
x = np.arange(4, dtype=np.float32)
assert np.array_equal(model(x, x), x + x)
assert "torch" not in sys.modules
import torch
y = model(torch.arange(4.0), torch.ones(4))
assert np.array_equal(y, torch.arange(4.0) + 1)
"""


def interpreters() -> dict[str, str]:
    """Return the interpreters of this machine by version, the one that runs this first."""
    candidates = [sys.executable, *(shutil.which(f"python{v}") or "" for v in VERSIONS)]
    managed = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
    found: dict[str, str] = {}
    for path in [*candidates, *map(str, managed)]:
        ask = "import sys, ensurepip, venv; print('%d.%d' % sys.version_info[:2])"
        done = path and subprocess.run([path, "-c", ask], capture_output=True, text=True)
        if done and done.returncode == 0 and done.stdout.strip() in VERSIONS:
            found.setdefault(done.stdout.strip(), path)
    return found


INTERPRETERS = interpreters()


def on(version: str) -> Environment:
    return environment(f"device-{version}", *DEVICE, python=INTERPRETERS[version])


@pytest.mark.parametrize("version", sorted(INTERPRETERS))
def test_runs_a_program(version: str, add_pte: Path) -> None:
    on(version).python("-c", RUN, add_pte)


def test_installs_no_torch_and_no_compiler(device: Environment) -> None:
    assert device.installed() - {"pip", "setuptools"} == {
        "etx-runtime",
        "etx-kernels-portable",
        "etx-schema",
        "flatbuffers",
        "numpy",
    }


def test_fits_the_budget(device: Environment) -> None:
    printed = device.python(ROOT / "tools" / "sizes.py", ROOT / "nowhere", "etx-schema", *DEVICE)
    total = re.search(r"([\d.]+) kB  device installation", printed)
    assert total, printed
    assert float(total[1]) * 1000 < BUDGET, printed


def test_takes_torch_tensors_without_importing_torch(add_pte: Path) -> None:
    both = environment("device-torch", *DEVICE, others=("torch==2.13.0",))
    both.python("-c", RUN_TORCH, add_pte)


def test_version_lists_what_is_installed(device: Environment) -> None:
    done = device.run("etx", "--version")
    assert done.returncode == 0, done.stderr
    projects = load_projects(ROOT)
    for name in ("etx-schema", *DEVICE):
        assert f"{name} {projects[name].version}" in done.stdout
    assert re.search(r"plugin ABI: \d+\.\d+", done.stdout), done.stdout
    assert "plugins: etx-kernels-portable" in done.stdout


def test_show_and_check(device: Environment, add_pte: Path) -> None:
    shown = device.run("etx", "show", add_pte)
    assert "aten::add.out(in0, in1, 1)" in shown.stdout, shown.stderr
    assert "runs on ExecuTorch 1.5.1, too" in shown.stdout
    checked = device.run("etx", "check", add_pte, "--target", "etx")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_native_wheels_state_a_manylinux_tag() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "wheels.py", *DEVICE], capture_output=True, text=True
    )
    wheels = [Path(line).name for line in done.stdout.split() if line.endswith(".whl")]
    native = [name for name in wheels if not name.endswith("-any.whl")]
    assert len(native) == 2, done.stdout + done.stderr
    if sys.platform.startswith("linux"):
        for name in native:
            version = min(int(v) for v in re.findall(r"manylinux_2_(\d+)_", name))
            assert version <= 28, f"{name} needs a glibc newer than 2.28"
