# SPDX-License-Identifier: BSD-3-Clause
"""What the core is on a Cortex-M55: its size with one kernel, and what its objects need."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from machines import BUILDS, HERE, MACHINES, build_with

RUNTIME = HERE.parents[1] / "packages" / "etx-runtime"
KERNELS = RUNTIME.with_name("etx-kernels-portable") / "native"
COMPILE = (
    "arm-none-eabi-g++ -std=c++17 -fsyntax-only -mthumb -mcpu=cortex-m55 -mfloat-abi=hard"
    " -fno-exceptions -fno-rtti -Wall -Wextra -Wconversion -Werror -DETX_ONE_LEVEL"
    ' -DETX_KERNELS_VERSION="0"'
)
# Newlib's memset and memmove and its startup are in it, too.
TEXT_BUDGET = 16 * 1024
OWN = re.compile(r"_ZNK?3etx\w+|_ZNK?7etx_fbs\w+|_ZNK?11flatbuffers\w+|etx_pal_\w+")
ALLOWED = re.compile(r"mem(cpy|move|set|cmp)|__aeabi_mem\w+")


@pytest.fixture(scope="module")
def folder() -> Path:
    """The core and the smallest application, built for size."""
    (machine,) = (machine for machine in MACHINES if machine.name == "cortex-m55")
    folder = BUILDS / "core-cortex-m55"
    options = ["-DCMAKE_BUILD_TYPE=MinSizeRel", "-DCMAKE_EXE_LINKER_FLAGS=-specs=nosys.specs"]
    options += ["-DETX_BUILD_HOSTED=OFF", "-DETX_BUILD_PYTHON=OFF", "-DETX_BUILD_TESTS=ON"]
    build_with(machine, RUNTIME, folder, options, "one_kernel")
    return folder


def call(*command: object) -> list[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


def symbols(archive: Path) -> list[list[str]]:
    """Return (name, kind, ...) of every symbol of a library."""
    lines = call("arm-none-eabi-nm", "--format=posix", archive)
    return [line.split() for line in lines if line and not line.endswith(":")]


def test_every_kernel_is_in_the_language_of_this_compiler() -> None:
    """Where `int32_t` is `long` and a size has 32 bits; there are no pairs of bfloat16."""
    sources = sorted(set(KERNELS.rglob("*.cpp")) - {KERNELS / "isa" / "pairs_level.cpp"})
    command = [*COMPILE.split(), f"-I{KERNELS}", f"-I{RUNTIME / 'include'}"]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda source: call(*command, source), sources))
    assert len(done) > 100


def test_text_size(folder: Path) -> None:
    sizes = call("arm-none-eabi-size", "-A", folder / "tests" / "cpp" / "one_kernel")
    text = next(int(line.split()[1]) for line in sizes if line.startswith(".text"))
    assert text <= TEXT_BUDGET, f"{text} bytes"


def test_the_core_needs_no_heap_exceptions_locks_or_system(folder: Path) -> None:
    """Neither a library for numbers: 64-bit division, conversion, arithmetic of doubles."""
    undefined = {name for name, kind, *_ in symbols(folder / "libetx_core.a") if kind == "U"}
    assert undefined
    foreign = {name for name in undefined if not OWN.fullmatch(name)}
    assert {name for name in foreign if not ALLOWED.fullmatch(name)} == set()


def test_the_core_has_no_globals_type_information_or_constructors(folder: Path) -> None:
    archive = folder / "libetx_core.a"
    listed = symbols(archive)
    assert [name for name, kind, *_ in listed if kind in "bBdD"] == []
    bad = ("_ZTI", "_ZTS", "_ZGV", "_GLOBAL__sub_I")
    assert [name for name, *_ in listed if name.startswith(bad)] == []
    sections = "\n".join(call("arm-none-eabi-objdump", "-h", archive))
    assert ".init_array" not in sections
    assert ".ctors" not in sections
