# SPDX-License-Identifier: BSD-3-Clause
"""The Python module under AddressSanitizer: the tests that hand memory to Python run once more."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import etx_runtime
import pytest
from building import UNITED, call, configure, tool
from conftest import HERE

FILES = (
    "calls/test_views.py",
    "calls/test_lifetimes.py",
    "calls/test_callbacks.py",
    "calls/test_state.py",
    "calls/test_calls.py",
    "calls/test_runtime.py",
    "loading/test_errors.py",
    "loading/test_safety.py",
    "calls/test_threads.py",
    "calls/test_interrupt.py",
    "loading/test_reading.py",
)
FOUND = 99
READS_FREED = """
import ctypes
from etx_runtime import _native
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
block = ctypes.c_void_p(libc.malloc(1000))
libc.free(block)
ctypes.string_at(block, 1000)
"""


def runtime_library(name: str) -> str:
    return call("g++", f"-print-file-name={name}").strip()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which Python imports the package with a sanitized module."""
    folder = tmp_path_factory.mktemp("sanitized")
    options = ["-DETX_BUILD_PYTHON=ON", "-DETX_SANITIZE=address", "-DCMAKE_CXX_COMPILER=g++"]
    options += ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-Og -g1", UNITED]
    configure(HERE.parent, folder / "build", *options, f"-DPython_EXECUTABLE={sys.executable}")
    call(tool("cmake"), "--build", folder / "build", "--target", "_native", "-j2")
    package = folder / "etx_runtime"
    installed = Path(etx_runtime.__file__).parent
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("_native*.so", "__pycache__"))
    shutil.copy2(next((folder / "build" / "native" / "python").glob("_native*.so")), package)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {
        "LD_PRELOAD": f"{runtime_library('libasan.so')} {runtime_library('libstdc++.so.6')}",
        "ASAN_OPTIONS": f"detect_leaks=0:exitcode={FOUND}:log_path={folder / 'report'}",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(folder),
    }


def run(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=HERE
    )


def reports(environment: dict[str, str]) -> str:
    """Return what the sanitizer wrote, of all processes, and forget it."""
    paths = [*Path(environment["PYTHONPATH"]).glob("report.*")]
    found = "\n".join(path.read_text() for path in paths)
    for path in paths:
        path.unlink()
    return found


def test_python_is_given_no_freed_memory(environment: dict[str, str]) -> None:
    options = ["-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    files = [HERE / name for name in FILES]
    done = run(environment, "-m", "pytest", *options, "-c", HERE.parent / "pyproject.toml", *files)
    found = reports(environment)
    assert (done.returncode, found) == (0, ""), done.stdout[-5000:] + found[:10000]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 250


def test_freed_memory_is_noticed(environment: dict[str, str]) -> None:
    package = Path(environment["PYTHONPATH"]) / "etx_runtime"
    assert "__asan_report_load" in call("nm", "-D", next(package.glob("_native*.so")))
    done = run(environment, "-c", READS_FREED)
    assert done.returncode == FOUND
    assert "heap-use-after-free" in reports(environment)
