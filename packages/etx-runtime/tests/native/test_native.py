# SPDX-License-Identifier: BSD-3-Clause
"""The C++ side: its tests on the installed package, what the core's objects contain, its size."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import etx_runtime
from building import call, configure, tool
from conftest import HERE
from programs import counter, drawing, left_open, loop, waiting

PACKAGE = Path(etx_runtime.__file__).parent
CORE = PACKAGE / "lib" / "libetx_core.a"
SHARED = "libetx_runtime.so"
TEXT_BUDGET = 24_000
# Of times; values and statistics are objects of their own, linked where they are asked for.
RECORDER_TEXT_BUDGET = 4096

ALLOWED = re.compile(r"mem(cpy|move|set|cmp)|etx_pal_\w+|_GLOBAL_OFFSET_TABLE_")


def test_installed_package_builds_and_passes(tmp_path: Path) -> None:
    program = tmp_path / "counter.pte"
    program.write_bytes(counter())
    endless = tmp_path / "loop.pte"
    endless.write_bytes(loop(2**62, waiting(), left_open("open"), drawing()))
    options = [f"-Detx_runtime_ROOT={PACKAGE}", f"-DETX_TEST_PROGRAM={program}"]
    options += [f"-DETX_TEST_LOOP={endless}"]
    configure(HERE / "cpp", tmp_path / "build", *options)
    call(tool("cmake"), "--build", tmp_path / "build", "-j2")
    ctest = Path(tool("cmake")).with_name("ctest")
    text = call(ctest, "--test-dir", tmp_path / "build", "--output-on-failure")
    assert "100% tests passed" in text
    assert "out of 10" in text
    plugin = next((tmp_path / "build").glob("libtest_plugin.*"))
    bench = call(tmp_path / "build" / "bench_dispatch", program, plugin, 100)
    assert "ns_per_instruction" in bench


def test_shared_library_exports_its_header_alone() -> None:
    listed = call("nm", "-D", "--defined-only", "--format=posix", PACKAGE / "lib" / SHARED)
    header = (PACKAGE / "include" / "etx" / "etx.h").read_text()
    declared = set(re.findall(r"^ETX_API [\w *]+?\b(etx_\w+)\(", header, re.MULTILINE))
    assert {line.split()[0] for line in listed.splitlines()} == declared
    assert len(declared) > 30


def test_core_needs_no_heap_exceptions_or_system() -> None:
    symbols = call("nm", "--undefined-only", "--format=posix", CORE).split("\n")
    names = {line.split()[0] for line in symbols if line and not line.endswith(":")}
    foreign = {n for n in names if not n.startswith(("_ZN3etx", "_ZNK3etx")) and not is_own(n)}
    assert {name for name in foreign if not ALLOWED.fullmatch(name)} == set()


def is_own(name: str) -> bool:
    """Tell whether another object of the core defines `name`."""
    return any(line.split()[:1] == [name] for line in defined_symbols())


def defined_symbols() -> list[str]:
    return call("nm", "--defined-only", "--format=posix", CORE).split("\n")


def test_core_has_no_type_information_or_static_constructors() -> None:
    names = [line.split()[0] for line in defined_symbols() if line and not line.endswith(":")]
    assert [
        name for name in names if name.startswith(("_ZTI", "_ZTS", "_ZGV", "_GLOBAL__sub_I"))
    ] == []
    sections = call("objdump", "-h", CORE)
    assert ".init_array" not in sections
    assert ".ctors" not in sections


def test_core_writes_no_globals() -> None:
    data = [
        line for line in defined_symbols() if len(line.split()) > 1 and line.split()[1] in "bBdD"
    ]
    assert data == []


def test_text_size(tmp_path: Path) -> None:
    """Core, verifier and readers with one kernel, at a fixed address as firmware is."""
    options = ["-DCMAKE_BUILD_TYPE=MinSizeRel", "-DETX_BUILD_HOSTED=OFF", "-DETX_BUILD_TESTS=ON"]
    options += ["-DETX_BUILD_PYTHON=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
    options += ["-DCMAKE_CXX_FLAGS=-fno-pie", "-DCMAKE_EXE_LINKER_FLAGS=-no-pie"]
    options.append("-DCMAKE_UNITY_BUILD=OFF")  # an object of each source
    configure(HERE.parent, tmp_path, *options)
    call(tool("cmake"), "--build", tmp_path, "--target", "one_kernel", "-j2")
    sizes = call("size", "-A", tmp_path / "tests" / "cpp" / "one_kernel")
    text = next(int(line.split()[1]) for line in sizes.split("\n") if line.startswith(".text"))
    assert text <= TEXT_BUDGET, f"{text} bytes"
    names = call("nm", "--demangle", tmp_path / "tests" / "cpp" / "one_kernel")
    assert not re.search("ETDump|EventTracer|Bundle|_traced|trace_one|run_range|describe", names)
    objects = call("size", "-A", tmp_path / "libetx_core.a").split("\n\n")
    (recorder,) = (part for part in objects if part.lstrip().startswith("etdump.cpp."))
    sections = [line.split() for line in recorder.split("\n") if line.startswith(".text")]
    text = sum(int(size) for _, size, _ in sections)
    assert text <= RECORDER_TEXT_BUDGET, f"{text} bytes of the recorder without values"


def test_import_brings_no_heavy_modules() -> None:
    code = (
        "import numpy, sys; old = {*sys.modules}\nimport etx_runtime\nprint(*{*sys.modules} - old)"
    )
    command = [sys.executable, "-c", code]
    new = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "etx_runtime" in new
    heavy = {"argparse", "asyncio", "flatbuffers", "importlib.metadata", "json", "rich", "torch"}
    heavy |= {"dataclasses", "etx_schema.files", "pathlib"}
    assert not heavy & set(new)


def test_free_threaded_python_stays_so() -> None:
    is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert is_enabled != bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def test_stub_is_current(tmp_path: Path) -> None:
    path, patterns = tmp_path / "_native.pyi", tmp_path / "patterns"
    patterns.write_text("etx_runtime._native.Method.__del__:\n")  # of the slot tp_finalize
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "etx_runtime._native"]
    options = ["-p", str(patterns), "-o", str(path)]
    subprocess.run([*command, *options], check=True, env=environment)
    committed = (HERE.parent / "src" / "etx_runtime" / "_native.pyi").read_text()
    assert ast.dump(ast.parse(committed)) == ast.dump(ast.parse(path.read_text()))
