# SPDX-License-Identifier: BSD-3-Clause
"""etx/aten.h: tensors cross both ways without a copy, under AddressSanitizer and UBSan."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import etx_kernels_aten
import etx_runtime
import torch

SOURCE = Path(__file__).parent / "cpp" / "test_aten.cpp"
TORCH = Path(torch.__path__[0])


def test_the_bridge_in_cpp(tmp_path):
    compiler = os.environ.get("CXX", "c++")
    command = [compiler] if shutil.which("ccache") is None else ["ccache", compiler]
    flags = ["-std=c++17", "-O1", "-g1", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=all"]
    folders = [f"-I{etx_kernels_aten.include_path()}", f"-I{etx_runtime.__path__[0]}/include"]
    folders += ["-isystem", f"{TORCH}/include"]
    libraries = [f"-L{TORCH}/lib", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{TORCH}/lib"]
    program, compiled = tmp_path / "test_aten", tmp_path / "test_aten.o"
    subprocess.run([*command, *flags, *folders, "-c", SOURCE, "-o", compiled], check=True)
    subprocess.run([compiler, *flags, compiled, "-o", program, *libraries], check=True)
    environ = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([program], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 failures\n")
