# SPDX-License-Identifier: BSD-3-Clause
"""Equal weights are packed into memory once, and memory ends with what uses it."""

from __future__ import annotations

import gc

import etx_runtime
import pytest
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


def test_equal_weights_are_kept_once(tmp_path):
    x = torch.randn(1, SIDE)
    paths = []
    for seed in (0, 0, 1):
        program, w = linear(seed)
        paths.append(tmp_path / f"{len(paths)}.pte")
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
    assert grown[0] >= WEIGHTS - 2
    assert grown[1] < WEIGHTS // 2
    assert grown[2] >= WEIGHTS - 2
    torch.testing.assert_close(models[2](x), expected, rtol=1e-4, atol=1e-3)
    kept = resident()
    del models
    gc.collect()
    assert resident() < kept - WEIGHTS // 2


def two_layers() -> GraphBuilder:
    torch.manual_seed(0)
    builder = GraphBuilder()
    x, y = builder.input(256, 256), builder.output(256, 256)
    middle = builder.value((256, 256))
    for source, target in ((x, middle), (middle, y)):
        builder.node("Abs", fbs.Unary(input_id=source, output_id=target))
    return builder


@pytest.mark.parametrize("sharing", ["delegate", "method", "process"])
def test_workspace(sharing, monkeypatch):
    builder = two_layers()
    x = torch.randn(256, 256)
    program = builder.program(specs={"workspace": sharing.encode()})
    models = [etx_runtime.load(program, outputs="torch") for _ in range(3)]
    for model in (*models, *models):
        assert torch.equal(model(x), x.abs())
    monkeypatch.setenv("ETX_XNNPACK_WORKSPACE", sharing)
    assert torch.equal(etx_runtime.load(builder.program(), outputs="torch")(x), x.abs())


def test_unknown_workspace():
    program = two_layers().program(specs={"workspace": b"everywhere"})
    with pytest.raises(etx_runtime.LoadError, match="workspace is 'everywhere'"):
        etx_runtime.load(program, outputs="torch")(torch.ones(256, 256))
