# SPDX-License-Identifier: BSD-3-Clause
"""The thread contract under ThreadSanitizer: eight threads on one program and all that may go on.

Runtime, plugins and the portable kernels are built with it. By hand, for as long as one likes, and
with other sanitizers:

    cmake -S tests/stress -B build -G Ninja -DCMAKE_CXX_FLAGS="-O1 -g1" \\
        -DETX_SANITIZE=address,undefined -DETX_STRESS_KERNELS=../etx-kernels-portable
    cmake --build build && python tests/thread_programs.py FOLDER
    build/stress_threads FOLDER 600 build/libstress_*.so build/kernels/etx_kernels_portable.so
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import thread_programs
from building import UNITED, call, configure, tool
from conftest import HERE
from programs import counter

KERNELS = HERE.parents[1] / "etx-kernels-portable"
FAMILIES = "binary;conv;copy;matmul;prim;reduce;softmax;unary"
SECONDS = os.environ.get("ETX_STRESS_SECONDS", "6")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stress")
    options = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-Og -g1", UNITED]
    options += [f"-DPython_EXECUTABLE={sys.executable}", f"-DETX_STRESS_KERNELS={KERNELS}"]
    options += [f"-DETX_KERNELS_FAMILIES={FAMILIES}", "-DETX_KERNELS_LEVEL=base"]
    configure(HERE / "stress", folder, *options)
    call(tool("cmake"), "--build", folder, "-j2")
    thread_programs.write(folder, portable=True)
    return folder


def run(program: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run under TSan, without address randomisation where that leaves it no room."""
    command = [str(program), *map(str, arguments)]
    for prefix in ([], [shutil.which("setarch") or "setarch", "-R"]):
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, check=False)
        if "unexpected memory mapping" not in done.stderr:
            break
    return done


def plugins(build: Path) -> list[Path]:
    found = [*build.glob("libstress_*.so"), build / "kernels" / "etx_kernels_portable.so"]
    assert len(found) == 3
    return found


def test_threads_share_a_program(build: Path) -> None:
    done = run(build / "stress_threads", build, SECONDS, *plugins(build))
    assert done.returncode == 0, done.stderr[:5000]
    assert "WARNING" not in done.stderr
    counts = [int(number) for number in re.findall(r"\d+", done.stdout)]
    assert len(counts) == 6
    assert min(counts) > 0


def test_pool(build: Path) -> None:
    done = run(build / "stress_pool")
    assert done.returncode == 0, done.stderr[:5000]


def test_c_interface(build: Path) -> None:
    """What etx.h says of threads: all of it, and a race where it forbids one."""
    (build / "counter.pte").write_bytes(counter())
    arguments = [build / "stress_c_api", build / "counter.pte", build / "libstress_kernels.so"]
    done = run(*arguments)
    assert done.returncode == 0, done.stderr[:5000]
    assert "WARNING" not in done.stderr
    assert done.stdout == "8 threads\n"
    done = run(*arguments, "race")
    assert done.returncode != 0
    assert "SUMMARY: ThreadSanitizer: data race" in done.stderr


@pytest.mark.parametrize(
    ("what", "place"), [("kernel", "stress/backend.cpp"), ("method", "core/execute.cpp")]
)
def test_planted_races_are_found(build: Path, what: str, place: str) -> None:
    """In a plugin on the pool's threads, and in the core."""
    done = run(build / "stress_threads", build, what, *plugins(build))
    assert done.returncode != 0
    assert re.search(rf"SUMMARY: ThreadSanitizer: data race \S*{place}", done.stderr), done.stderr
