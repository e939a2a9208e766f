# SPDX-License-Identifier: BSD-3-Clause
"""The tensor that kernels are written for is a subset of at::Tensor: their sources compile against
one that has an at::Tensor beneath (cpp/over_aten/etx/tensor.h), whose sizes are ATen's int64.

CI compiles a few, drawn by `--samples-seed`; `nox -s aten-samples` compiles all.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import etx_runtime
import pytest
import torch

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "etx-kernels-portable" / "native"
FAMILIES = ("elementwise", "reduce", "move", "index")
DRAWN = 3


def sources() -> list[Path]:
    return sorted(path for name in FAMILIES for path in (KERNELS / "ops" / name).glob("*.cpp"))


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Return a compiler's command line, with the tensor's header compiled once."""
    folder = tmp_path_factory.mktemp("over_aten")
    header = folder / "etx" / "tensor.h"
    header.parent.mkdir()
    shutil.copy(HERE / "cpp" / "over_aten" / "etx" / "tensor.h", header)
    found = [os.environ.get("CXX", "c++"), "-std=c++17", "-O0", "-fPIC", f"-I{folder}"]
    found += [f"-I{etx_runtime.__path__[0]}/include", f"-I{KERNELS}"]
    found += ["-isystem", f"{torch.__path__[0]}/include"]
    subprocess.run([*found, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
    return found


def compiles(command, path):
    done = subprocess.run([*command, "-fsyntax-only", path], capture_output=True, text=True)
    assert done.returncode == 0, f"{path}\n{done.stderr}"


def test_drawn_sources_compile_over_at_tensor(command, request):
    draw = random.Random(request.config.getoption("--samples-seed"))
    for path in draw.sample(sources(), DRAWN):
        compiles(command, path)


@pytest.mark.slow
def test_all_sources_compile_over_at_tensor(command):
    assert len(sources()) > 40
    for path in sources():
        compiles(command, path)
