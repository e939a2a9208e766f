# SPDX-License-Identifier: BSD-3-Clause
"""Equal models give equal bytes: in two processes, with other hashes, from another folder."""

import os
import runpy
import subprocess
import sys

import pytest
import torch

MODEL = '''
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    """Something for every table of the file."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(20, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.cell = nn.GRU(8, 8, batch_first=True)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, tokens, extra):
        x = self.layer(self.words(tokens))
        self.seen.add_(extra["scale"])
        y = torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: x.exp().sin(), (x,))
        return {"y": self.cell(y)[0], "words": F.linear(x, self.words.weight), "n": self.seen * 1}
'''
SCRIPT = """
import torch
from etx_exir import to_edge
from reproduced import Net

inputs = torch.ones(1, 4, dtype=torch.long), {"scale": torch.ones(2), "b": torch.ones(1)}
length = torch.export.Dim("length", min=2, max=8)
module = Net().eval()
still = torch.export.export(module, inputs)
module = torch.nn.Sequential(torch.nn.Linear(3, 3)).eval()
dynamic = torch.export.export(module, (torch.ones(2, 3),), dynamic_shapes=({0: length},))
edge = to_edge({"forward": still, "other": dynamic}, constant_methods={"b": 1, "a": [2, 3]})
file = edge.to_executorch()
file.save("net.pte")
"""


def written(folder):
    folder.mkdir(parents=True)
    (folder / "reproduced.py").write_text(MODEL)
    (folder / "lower.py").write_text(SCRIPT)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_bytes_depend_on_the_model_alone(tmp_path, monkeypatch):
    """This process, which has compiled others, and a new one: strings have other hashes there."""
    here, there = written(tmp_path / "a"), written(tmp_path / "other" / "folder")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(here)
    runpy.run_path("lower.py")
    del sys.modules["reproduced"]
    first = (here / "net.pte").read_bytes()
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-W", "ignore", "lower.py"]
    subprocess.run(command, cwd=there, env=environment, check=True)
    assert (there / "net.pte").read_bytes() == first
    assert b"reproduced.py:" in first
    for path in (tmp_path, os.path.dirname(torch.__file__), os.path.dirname(__file__)):
        assert str(path).encode() not in first
