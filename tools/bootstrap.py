# SPDX-License-Identifier: BSD-3-Clause
"""Runs nox from a private environment, so that `python3 noxfile.py` needs only Python."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tools" / "requirements-nox.txt"
ENVIRONMENT = ROOT / ".build" / "nox"
OLDEST = (3, 10)


def missing() -> str | None:
    """Return what this Python lacks to make an environment, as an instruction."""
    if sys.version_info < OLDEST:
        return f"Python {sys.version.split()[0]} is too old: run this with 3.10 or newer"
    try:
        import ensurepip
        import venv
    except ImportError:
        return "this Python cannot make environments; run: apt-get install python3-venv"
    return None if ensurepip and venv else "unreachable"


def prepare() -> Path:
    """Return the Python of the private environment, made or renewed when needed."""
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = ENVIRONMENT / "requirements.sha256"
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"setting up nox in {ENVIRONMENT.relative_to(ROOT)}", flush=True)
    subprocess.check_call([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.check_call([*pip, "-r", str(REQUIREMENTS)])
    stamp.write_text(digest)
    return python


def main(arguments: list[str]) -> int:
    problem = missing()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    python = prepare()
    command = [str(python), "-m", "nox", "-f", str(ROOT / "noxfile.py"), *arguments]
    return subprocess.call(command, cwd=ROOT)
