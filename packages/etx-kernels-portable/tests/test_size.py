# SPDX-License-Identifier: BSD-3-Clause
"""How large the plugin may be: of it, all integer kernels at all levels are less than 200 kB."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from etx_kernels_portable import library_path

MOST_BYTES = {"x86_64": 1_540_000}


@pytest.mark.parametrize("machine", MOST_BYTES)
def test_the_plugin_is_small(machine: str, tmp_path: Path) -> None:
    copy = Path(shutil.copy(library_path(), tmp_path))
    strip = shutil.which("strip")
    assert strip is not None, "strip is missing"
    subprocess.run([strip, copy], check=True)
    is_here = platform.machine() == machine and platform.libc_ver()[0] == "glibc"
    assert not is_here or copy.stat().st_size <= MOST_BYTES[machine]
