# SPDX-License-Identifier: BSD-3-Clause
"""XNNPACK as it is built here computes right, and with which microkernels is printed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from building import call, configure

HERE = Path(__file__).parent
TOOLS = ("sweep", "packing", "blocks", "narrow", "panels", "pools", "plan", "sigmoids", "pieces")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("sweep")
    configure(HERE.parent, build, "-DETX_XNNPACK_TESTS=ON")
    call("cmake", "--build", build, "--target", *TOOLS)
    return build / "tests" / "cpp" / "sweep"


def test_numbers_are_right(sweep: Path) -> None:
    out = call(sweep)
    assert "56 cases, 0 failures" in out
    assert len(re.findall(r"^ok  ", out, re.MULTILINE)) == 56


def test_what_is_packed_at_run_time_is_padded(sweep: Path) -> None:
    assert "162 cases, 0 failures" in call(sweep.parent / "packing")


def test_blocks_are_the_bytes_that_xnnpack_packs(sweep: Path) -> None:
    assert "5474 cases, 0 failures" in call(sweep.parent / "blocks")


def test_layers_of_few_columns_take_narrow_kernels(sweep: Path) -> None:
    assert "600 cases, 0 failures" in call(sweep.parent / "narrow")


def test_max_pools_read_no_tap_outside_of_their_window(sweep: Path) -> None:
    assert "4000 cases, 0 failures" in call(sweep.parent / "pools")


def test_values_lie_where_nothing_overwrites_them(sweep: Path) -> None:
    assert "5000 cases, 0 failures" in call(sweep.parent / "plan")


def test_sigmoids_of_numbers_of_every_exponent(sweep: Path) -> None:
    assert "1403 cases, 0 failures" in call(sweep.parent / "sigmoids")


def test_items_in_runs_and_parts_of_rows_are_computed_once(sweep: Path) -> None:
    assert " cases, 0 failures" in call(sweep.parent / "pieces")


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
