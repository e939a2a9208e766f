# SPDX-License-Identifier: BSD-3-Clause
"""Build and run C++ with the tools of this environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def tool(name: str) -> str:
    """Find a program beside the interpreter first: the wheels of cmake and ninja lie there."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is missing"
    return found


def call(*command: object) -> str:
    """Run a command that must succeed; return what it prints."""
    words = [str(word) for word in command]
    words[0] = tool(words[0]) if "/" not in words[0] else words[0]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout


def configure(source: Path, build: Path, *options: object) -> None:
    found = (f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}")
    call("cmake", "-S", source, "-B", build, "-G", "Ninja", *found, *options)
