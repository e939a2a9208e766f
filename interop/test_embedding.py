# SPDX-License-Identifier: BSD-3-Clause
"""Programs outside of the repository embed the installed runtime and run a real model.

`examples/cpp-app` and `examples/c-app` are copied away, built with find_package(etx_runtime) and
the installed kernels, and compared with eager.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import HERE, Workshop
from test_pairings import compare

MODEL = "mobilenet_v2"
EXAMPLES = HERE.parent / "examples"


def call(*command: object, stdin: bytes = b"") -> str:
    done = subprocess.run([str(word) for word in command], input=stdin, capture_output=True)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


def tool(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found is not None, f"{name} is missing"
    return found


def lines(path: Path) -> list[str]:
    """Return the lines that are neither blank nor comments."""
    words = (line.strip() for line in path.read_text().splitlines())
    return [line for line in words if line and not line.startswith(("# ", "//", "/*"))]


@pytest.fixture(scope="session")
def mobilenet(workshop: Workshop) -> Path:
    return workshop.lowered_by_etx(MODEL)


def test_the_application_is_short() -> None:
    names = ("CMakeLists.txt", "main.cpp")
    code = [line for name in names for line in lines(EXAMPLES / "cpp-app" / name)]
    assert len(code) <= 20


@pytest.mark.parametrize("example", ["cpp-app", "c-app"])
def test_application_agrees_with_eager(example: str, mobilenet: Path, tmp_path: Path) -> None:
    source = shutil.copytree(EXAMPLES / example, tmp_path / example)
    config = call(sys.executable, "-m", "etx_runtime", "--cmake-dir").strip()
    kernels = call(sys.executable, "-m", "etx_runtime", "--plugins").strip()
    ninja = f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"
    options = ["-G", "Ninja", ninja, "-DCMAKE_BUILD_TYPE=Release", f"-Detx_runtime_DIR={config}"]
    call(tool("cmake"), "-S", source, "-B", tmp_path / "build", *options)
    call(tool("cmake"), "--build", tmp_path / "build")
    arrays = np.load(mobilenet / "calls.npz")
    assert json.loads((mobilenet / "calls.json").read_text())[0] == [1, 1]
    image = arrays["call0_input0"]
    assert image.shape == (1, 3, 224, 224)
    command = (tmp_path / "build" / "app", mobilenet / "etx.pte", kernels)
    printed = call(*command, stdin=image.tobytes())
    scores = np.array(printed.split(), np.float32).reshape(1, -1)
    compare(scores, arrays["call0_output0"], "scores", True)
