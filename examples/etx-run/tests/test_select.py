# SPDX-License-Identifier: BSD-3-Clause
"""`etx select --toolchain` builds the kernels of MobileNetV2 for other processors, in few bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from machines import HERE

SOURCES = HERE.parents[1] / "packages" / "etx-kernels-portable"
ETX = Path(sys.executable).with_name("etx")
OPERATORS = ("add.out", "convolution.out", "hardtanh.out", "linear.out", "mean.out")
MOST_CODE = {"cortex-m55": 60_000, "aarch64": 75_000}


@pytest.mark.parametrize("name", MOST_CODE)
def test_a_selection_is_built_by_a_toolchain(name: str, tmp_path: Path) -> None:
    named = [word for each in OPERATORS for word in ("--operator", f"aten::{each}")]
    toolchain = HERE / "toolchains" / f"{name}.cmake"
    words = [*named, "--dtype", "float32", "--static", "--optimize=-Os", "--level", "base"]
    words += ["--toolchain", toolchain, "--sources", SOURCES, "--json", "-o", tmp_path / "kernels"]
    command = [str(word) for word in (ETX, "select", *words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    document = json.loads(done.stdout)
    assert sum(row["code"] for row in document["sizes"].values()) <= MOST_CODE[name]
    assert sorted(document["operator_sizes"]) == [f"aten::{each}" for each in OPERATORS]
    assert document["operator_sizes"]["aten::convolution.out"]["own"] > 10_000
