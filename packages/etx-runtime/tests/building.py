# SPDX-License-Identifier: BSD-3-Clause
"""Build and run C++ with the tools of this environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

UNITED = "-DCMAKE_UNITY_BUILD=ON"
"""Several sources are compiled at once: half of the time, where no bytes are counted."""


def tool(name: str) -> str:
    """Find a program beside the interpreter first: the wheels of cmake and ninja lie there."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is missing"
    return found


def call(*command: object, both: bool = False) -> str:
    """Run a command that must succeed; return what it prints, with `both` also to stderr."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    ended = f"{words[0]} ended with {done.returncode}:\n"  # -14: by SIGALRM, which prints nothing
    assert done.returncode == 0, ended + done.stdout + done.stderr
    return done.stdout + done.stderr if both else done.stdout


def configure(source: Path, build: Path, *options: object) -> None:
    ninja = f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"
    call(tool("cmake"), "-S", source, "-B", build, "-G", "Ninja", ninja, *options)
