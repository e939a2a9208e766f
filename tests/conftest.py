# SPDX-License-Identifier: BSD-3-Clause
"""Environments of the repository's own tests: made once, kept in .build/env, shared by tests."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))


class Environment:
    """A Python that holds some packages, run outside of the source tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")

    def run(
        self, *command: object, cwd: Path | None = None, prefix: tuple[str, ...] = (), **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, output captured, without this process's variables."""
        program, *arguments = map(str, command)
        return subprocess.run(
            [*prefix, str(self.bin / program), *arguments],
            cwd=cwd or self.folder,
            env=self.variables() | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    @staticmethod
    def variables() -> dict[str, str]:
        """Return the variables of this process without those of its Python and of ETX."""
        return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ETX_"))}

    def python(self, *arguments: object, cwd: Path | None = None, **env: str) -> str:
        """Run Python in isolated mode, return what it prints."""
        done = self.run("python", "-I", *arguments, cwd=cwd, **env)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    def installed(self) -> set[str]:
        """Return the names of its distributions, in lower case."""
        names = "from importlib.metadata import distributions as d; print(*(x.name for x in d()))"
        return set(self.python("-c", names).lower().split())


@functools.cache
def environment(
    name: str,
    *packages: str,
    python: str = sys.executable,
    others: tuple[str, ...] = (),
    also: Path | None = None,
) -> Environment:
    """Return .build/env/<name> with exactly these packages and what they declare.

    Packages may lie in the folder `also`, besides those of the repository.
    """
    folder = ROOT / ".build" / "env" / name
    command = [sys.executable, str(ROOT / "tools" / "wheels.py"), "--venv", str(folder)]
    command += ["--python", python, "--install", *packages]
    command += ["--also", str(also)] if also else []
    command += ["--with", *others] if others else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return Environment(folder)


@pytest.fixture(scope="session")
def device() -> Environment:
    """Return a device: only the runtime and its kernels."""
    return environment("device", "etx-runtime", "etx-kernels-portable")


@pytest.fixture(scope="session")
def add_pte(device: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that adds two vectors of up to eight floats."""
    folder = tmp_path_factory.mktemp("programs")
    device.python(ROOT / "tests" / "programs.py", folder)
    return folder / "add.pte"
