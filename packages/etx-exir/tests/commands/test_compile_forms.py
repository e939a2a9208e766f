# SPDX-License-Identifier: BSD-3-Clause
"""`etx compile`: keyword inputs, several methods, weights outside, alignments."""

from __future__ import annotations

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir.errors import CaptureError
from etx_exir.lower.capture import capture
from etx_schema import read_pte
from etx_schema.cli import main
from torch import nn

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x, *, scale):
        return self.layer(x) * scale

class Keywords(Net):
    example_inputs = (torch.ones(2, 8),)
    example_kwargs = {"scale": torch.full((1,), 2.0)}

INPUTS, KWARGS = Keywords.example_inputs, Keywords.example_kwargs
SHAPES = {"x": {0: torch.export.Dim("rows", max=4)}, "scale": None}

def named():
    return Net(), {"x": INPUTS[0], **KWARGS}

def four():
    return Net(), INPUTS, KWARGS, SHAPES

def methods():
    net = Net()
    return {"plain": (nn.ReLU(), INPUTS), "scaled": (net, INPUTS, KWARGS, None)}

def without():
    return Net(), INPUTS

def wrong():
    return {"a": 3}
"""


@pytest.fixture
def build(tmp_path, capsys):
    path = tmp_path / "forms.py"
    path.write_text(MODEL)

    def run(factory, *options):
        out = tmp_path / "net.pte"
        code = main(["compile", f"{path}:{factory}", "-o", str(out), *options])
        text = capsys.readouterr()
        return (out, text.out) if code == 0 else (None, text.err)

    return run


X, TWO = np.ones((2, 8), np.float32), np.full(1, 2.0, np.float32)


@pytest.mark.parametrize("factory", ["Keywords", "named", "four"])
def test_keyword_inputs(build, factory):
    path, _ = build(factory)
    assert etx_runtime.load(path)(x=X, scale=TWO).shape == (2, 8)


def test_several_methods(build):
    path, text = build("methods")
    model = etx_runtime.load(path)
    assert model.method_names == {"plain", "scaled"}
    assert "3 instructions" in text
    assert model.call("scaled", X, scale=TWO).shape == (2, 8)


def test_weights_outside_and_alignments(build, tmp_path):
    weights = tmp_path / "heavy.ptd"
    path, _ = build("Keywords", "--weights", str(weights), "--segment-alignment", "4096")
    assert weights.stat().st_size > 8 * 8 * 4
    model = etx_runtime.load(path, data=[weights])
    assert model(X, scale=TWO).shape == (2, 8)
    assert not any(len(blob) > 16 for blob in read_pte(path.read_bytes()).constants)


def test_advice(build):
    assert "keyword inputs go into example_kwargs" in build("without")[1]
    assert "by method name" in build("wrong")[1]
    assert "power of two" in build("named", "--constant-alignment", "3")[1]
    assert "ends in .ptd" in build("named", "--weights", "heavy.bin")[1]


def test_what_torch_prints_of_a_module_it_refuses_is_held_back(capfd):
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(CaptureError, match=r"torch\.cond"):
        capture(Branch(), (torch.ones(2),))
    assert capfd.readouterr() == ("", "")
