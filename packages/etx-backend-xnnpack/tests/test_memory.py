# SPDX-License-Identifier: BSD-3-Clause
"""Equal weights are packed once, memory ends with what uses it, workspaces are shared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import etx_runtime
import pytest
import torch
from etx_backend_xnnpack._generated import xnnpack as fbs
from graphs import GraphBuilder


def test_equal_weights_are_kept_once(tmp_path):
    """In a process of its own, where freed arrays go back to the system at once."""
    command = [sys.executable, str(Path(__file__).with_name("kept_once.py")), str(tmp_path)]
    mapped = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
    done = subprocess.run(command, capture_output=True, text=True, env=mapped)
    assert done.returncode == 0, done.stderr


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
