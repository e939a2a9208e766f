# SPDX-License-Identifier: BSD-3-Clause
"""A process's own memory while models with equal weights come and go; for test_memory.py."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import etx_runtime
import torch
from etx_backend_xnnpack._generated import xnnpack as fbs
from graphs import NONE, GraphBuilder

SIDE = 2048
MEGABYTE = 1 << 20
WEIGHTS = SIDE * SIDE * 4 // MEGABYTE


def resident() -> int:
    """Return the process's own memory in MB: without what is mapped from files."""
    with open("/proc/self/status") as lines:
        (row,) = (line for line in lines if line.startswith("RssAnon"))
    return int(row.split()[1]) // 1024


def linear(seed: int) -> tuple[bytes, torch.Tensor]:
    torch.manual_seed(seed)
    builder, w = GraphBuilder(), torch.randn(SIDE, SIDE)
    x, y = builder.input(1, SIDE), builder.output(1, SIDE)
    filter_ = builder.value((SIDE, SIDE), data=w)
    payload = fbs.FullyConnected(input1_id=x, filter_id=filter_, bias_id=NONE, output_id=y)
    builder.node("FullyConnected", payload)
    return builder.program(), w


def check(folder: Path) -> None:
    x = torch.randn(1, SIDE)
    paths = []
    for seed in (0, 0, 1):
        program, w = linear(seed)
        paths.append(folder / f"{len(paths)}.pte")
        paths[-1].write_bytes(program)
        del program
    expected = x @ w.T
    gc.collect()
    grown, models = [], []
    for path in paths:
        before = resident()
        models.append(etx_runtime.load(str(path), outputs="torch"))
        models[-1](x)
        grown.append(resident() - before)
    assert grown[0] >= WEIGHTS - 2, grown
    assert grown[1] < WEIGHTS // 2, grown
    assert grown[2] >= WEIGHTS - 2, grown
    torch.testing.assert_close(models[2](x), expected, rtol=1e-4, atol=1e-3)
    kept = resident()
    del models
    gc.collect()
    assert resident() < kept - WEIGHTS // 2, (kept, resident())


if __name__ == "__main__":
    check(Path(sys.argv[1]))
