# SPDX-License-Identifier: BSD-3-Clause
"""The first command says what is missing, in one line, before it does anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import bootstrap


def test_says_what_to_install_where_python_lacks_ensurepip(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    assert bootstrap.main(["-s", "demo"]) == 1
    message = capsys.readouterr().err
    assert "apt-get install python3-venv" in message
    assert len(message.splitlines()) == 1


def test_refuses_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "OLDEST", (4, 0))
    assert "too old" in (bootstrap.missing() or "")


def test_refuses_to_install_outside_of_an_environment() -> None:
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    command = [sys.executable, ROOT / "tools" / "wheels.py", "--install", "etx-schema"]
    done = subprocess.run([*command, "--python", base], capture_output=True, text=True)
    assert done.returncode == 1
    assert "--venv DIR" in done.stderr


def test_lists_the_sessions() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "noxfile.py", "-l"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for session in ("demo", "tests", "lint", "interop", "bench", "wheels", "size", "release"):
        assert f" {session} -> " in done.stdout
