# SPDX-License-Identifier: BSD-3-Clause
"""XNNPACK as it is built here computes right, and with which microkernels is printed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from building import call, configure

HERE = Path(__file__).parent
CASES = {
    "packing": 162,  # What is packed at run time is padded.
    "blocks": 5474,  # Blocks are the bytes that XNNPACK packs.
    "narrow": 600,  # Layers of few columns take narrow kernels.
    "pools": 4000,  # Max pools read no tap outside of their window.
    "plan": 5000,  # Values lie where nothing overwrites them.
    "sigmoids": 1403,  # Numbers of every exponent.
    "transposed": 4000,  # Outputs may be shorter than a stride.
    "pieces": 2104,  # Items in runs, and parts of rows, are computed once.
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("sweep")
    configure(HERE.parent, build, "-DETX_XNNPACK_TESTS=ON")
    call("cmake", "--build", build, "--target", "sweep", "panels", *CASES)
    return build / "tests" / "cpp" / "sweep"


def test_numbers_are_right(sweep: Path) -> None:
    out = call(sweep)
    assert "56 cases, 0 failures" in out
    assert len(re.findall(r"^ok  ", out, re.MULTILINE)) == 56


@pytest.mark.parametrize("tool", CASES)
def test_cases_are_right(sweep: Path, tool: str) -> None:
    assert f"{CASES[tool]} cases, 0 failures" in call(sweep.parent / tool)


def test_weights_beyond_the_cache_are_read_in_panels(sweep: Path) -> None:
    found = call(sweep.parent / "panels")
    assert ", 0 failures" in found or "no size of a cache is known" in found


def test_microkernels_of_this_machine(sweep: Path) -> None:
    table = subprocess.check_output(["nm", sweep], text=True)
    symbols = {
        int(row.split()[0], 16): row.split()[2] for row in table.splitlines() if row[0] != " "
    }
    (here,) = (place for place, name in symbols.items() if name == "_Z13print_kernelsv")
    rows = re.findall(r"^kernel (.+) (\d+x\d+) at (-?\d+)$", call(sweep), re.MULTILINE)
    names = [symbols[here + int(distance)] for _, _, distance in rows]
    for (what, tile, _), name in zip(rows, names, strict=True):
        print(f"{what:14} {tile:6} {name}")
    assert len(names) >= 12
    assert all("ukernel" in name for name in names)
    assert not any("amx" in name for name in names)
