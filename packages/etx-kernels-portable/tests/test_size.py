# SPDX-License-Identifier: BSD-3-Clause
"""How large the plugin may be, and what integer operators have of it at all levels together."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest
from building import call, configure, tool
from etx_kernels_portable import library_path

PACKAGE = Path(__file__).parents[1]
MOST_BYTES = {"x86_64": 1_540_000}
MOST_INTEGER_BYTES = {"x86_64": 200_000}


def is_here(machine: str) -> bool:
    return platform.machine() == machine and platform.libc_ver()[0] == "glibc"


@pytest.mark.parametrize("machine", MOST_BYTES)
def test_the_plugin_is_small(machine: str, tmp_path: Path) -> None:
    copy = Path(shutil.copy(library_path(), tmp_path))
    call(tool("strip"), copy)
    assert not is_here(machine) or copy.stat().st_size <= MOST_BYTES[machine]


@pytest.mark.parametrize("machine", MOST_INTEGER_BYTES)
def test_integer_operators_are_small(machine: str, tmp_path: Path) -> None:
    """Code and tables of them and of their loops at every level, as a wheel has them."""
    ninja = tool("ninja"), "-C", tmp_path
    configure(PACKAGE, tmp_path, "-DCMAKE_BUILD_TYPE=Release")
    targets = [line.split(":")[0] for line in call(*ninja, "-t", "targets", "all").splitlines()]
    objects = [name for name in targets if "/integer/" in name and name.endswith(".o")]
    assert len(objects) >= 20
    call(*ninja, "-j2", *objects)
    sizes = call(tool("size"), *(tmp_path / name for name in objects)).splitlines()[1:]
    total = sum(int(number) for line in sizes for number in line.split()[:2])
    assert not is_here(machine) or total <= MOST_INTEGER_BYTES[machine]
