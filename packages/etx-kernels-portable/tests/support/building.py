# SPDX-License-Identifier: BSD-3-Clause
"""Tools of this environment and of the system, and calls of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def tool(name: str) -> str:
    """Return where `name` is, of this environment first."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is missing"
    return found


def call(*command: object) -> str:
    """Run a command that must succeed; return all it prints."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout + done.stderr
