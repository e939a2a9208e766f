# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of `cortex_m::` operators, on the host."""

from __future__ import annotations

import json
import re
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
from etx_backend_arm.native import cortex_m_path, library_path
from etx_kernels_portable.target import kernels

DATA = Path(__file__).parent / "data"
NATIVE = Path(__file__).resolve().parents[1] / "native" / "cortex_m"


def test_the_target_lists_the_kernels() -> None:
    listed = json.loads(Path(cortex_m_path()).read_text())["operators"]
    assert set(listed) == {name for name, _ in kernels(library_path())}


def test_every_family_is_a_file_whose_rows_firmware_finds() -> None:
    families = re.findall(r"^ +X\((\w+)\)", (NATIVE / "families.h").read_text(), re.M)
    rows = [re.findall(r'"(cortex_m::[^"]+)"', (NATIVE / f"{n}.cpp").read_text()) for n in families]
    assert all(rows)
    assert {name for row in rows for name in row} == {name for name, _ in kernels(library_path())}


def test_a_file_of_executorch_gives_what_executorch_computes() -> None:
    """`kws_executorch.pte` and what it returns were written by executorch 1.5.1 for a Cortex-M55;
    the network is that of tiny.py."""
    arrays = np.load(DATA / "kws_executorch.npz")
    model = etx_runtime.load(DATA / "kws_executorch.pte")
    np.testing.assert_array_equal(np.asarray(model(arrays["input"])), arrays["output"])


@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_file_is_refused_or_runs(seed: int, tmp_path: Path) -> None:
    """Numbers of the file are changed: arguments of kernels among them."""
    generator = np.random.default_rng(seed)
    content = np.fromfile(DATA / "kws_executorch.pte", np.uint8)
    image = np.load(DATA / "kws_executorch.npz")["input"]
    ran = 0
    for _ in range(60):
        damaged = content.copy()
        damaged[generator.integers(16, 14_000)] = generator.integers(0, 256)
        try:
            etx_runtime.load(damaged.tobytes())(image)
            ran += 1
        except etx_runtime.RuntimeFailure:
            continue
    assert ran > 0
