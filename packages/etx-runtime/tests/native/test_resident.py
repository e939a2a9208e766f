# SPDX-License-Identifier: BSD-3-Clause
"""What is resident: planned arenas, the weights that were touched where they lie, and 3 MB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import etx_schema as es
import numpy as np
import pytest
from conftest import HERE
from programs import FLOAT, Builder

PROBE = HERE / "memory_probe.py"
WEIGHTS = 16
SIDE = 1024
WEIGHTS_KB = WEIGHTS * SIDE * SIDE * 4 // 1024
OWN_KB = 3 * 1024

pytestmark = pytest.mark.xfail(
    not Path("/proc/self/smaps_rollup").exists(),
    reason="the operating system does not account for mappings",
    strict=True,
)


def weight(index: int) -> bytes:
    return np.full((SIDE, SIDE), index + 1, np.float32).tobytes()


def program(*, external: bool) -> Builder:
    """x + w0 + w1 + ... in 64 MB of weights, in the file or in a .ptd."""
    b = Builder()
    x = b.input(b.tensor((SIDE, SIDE), memory="unbound"))
    out = b.tensor((SIDE, SIDE))
    for index in range(WEIGHTS):
        if external:
            stored = b.tensor((SIDE, SIDE), memory="external", name=f"w{index}")
        else:
            stored = b.tensor((SIDE, SIDE), memory="constant", data=weight(index))
        b.add(out if index else x, stored, out)
    b.output(out)
    return b


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[Path]]:
    """The program with its weights, and the one that takes them from a .ptd with it.

    They are on the disk before they are mapped: pages that wait to be written count as dirty.
    """
    folder = tmp_path_factory.mktemp("weights")
    paths = [folder / "whole.pte", folder / "small.pte", folder / "weights.ptd"]
    paths[0].write_bytes(program(external=False).serialize())
    paths[1].write_bytes(program(external=True).serialize())
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[SIDE, SIDE], dim_order=[0, 1])
    blobs = {f"w{i}": es.NamedBlob(weight(i), layout=layout) for i in range(WEIGHTS)}
    es.write_ptd(es.PtdFile(blobs), paths[2])
    for path in paths:
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    return {False: paths[:1], True: paths[1:]}


def probe(how: str, plugin: Path, files: list[Path], cache: Path) -> dict[str, Any]:
    """Run the probe in a process that finds compiled Python files, as an installation has them."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE",)}
    env |= {"PYTHONPYCACHEPREFIX": str(cache), "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": ""}
    command = [sys.executable, PROBE, how, plugin, *files]
    for _ in range(1 if cache.exists() else 2):
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled") / "cache"


@pytest.mark.parametrize("external", [False, True], ids=["pte", "ptd"])
@pytest.mark.parametrize("how", ["path", "file", "mapping"])
def test_weights_stay_in_the_file(how, external, files, plugin, cache):
    result = probe(how, plugin, files[external], cache)
    planned, file = result["used"]["planned"] // 1024, result["file"]
    assert file["run"]["Private_Dirty"] == file["run"]["Anonymous"] == 0
    assert file["load"]["Rss"] < WEIGHTS_KB // 16 <= WEIGHTS_KB <= file["run"]["Rss"]
    assert result["load"]["Rss"] <= file["load"]["Rss"] + OWN_KB
    assert result["run"]["Anonymous"] <= planned + OWN_KB
    assert result["run"]["Rss"] <= planned + file["run"]["Rss"] + OWN_KB


@pytest.mark.parametrize("external", [False, True], ids=["pte", "ptd"])
@pytest.mark.parametrize("how", ["bytes", "memoryview", "stream"])
def test_weights_stay_in_memory_that_cannot_change(how, external, files, plugin, cache):
    result = probe(how, plugin, files[external], cache)
    copies = WEIGHTS_KB if how == "stream" else 0
    assert result["load"]["Rss"] <= copies + OWN_KB
    assert result["run"]["Rss"] <= copies + result["used"]["planned"] // 1024 + OWN_KB


def test_writable_memory_is_copied_once(files, plugin, cache):
    result = probe("bytearray", plugin, files[False], cache)
    assert WEIGHTS_KB <= result["load"]["Rss"] <= WEIGHTS_KB + 1024 + OWN_KB
