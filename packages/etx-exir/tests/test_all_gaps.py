# SPDX-License-Identifier: BSD-3-Clause
"""All that keeps a program from a file is told at once, each with operator, module and line."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import to_edge
from etx_exir.emit.errors import EmitError
from etx_exir.origin import source_line
from etx_exir.target import UnsupportedError
from etx_schema.cli import main
from torch import nn
from torch.export import Dim


class Gaps(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)

    def forward(self, x, i):
        inverse = torch.linalg.inv(self.head(x))
        counts = torch.bincount(i)
        bessel = torch.special.bessel_j0(x)
        return inverse, counts * 2, bessel, torch.histc(x)


def line_of(text):
    lines, first = inspect.getsourcelines(Gaps)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_no_finding_hides_another():
    program = torch.export.export(Gaps(), (torch.eye(3), torch.arange(4)))
    with pytest.raises(UnsupportedError) as caught:
        to_edge(program).to_executorch()
    found = {
        (p.message.split(":")[0] if "size" in p.message else p.subject): p
        for p in caught.value.problems
    }
    wanted = {
        "aten::linalg_inv_ex.inverse": "linalg.inv",
        "aten.bincount.default": "bincount",
        "aten::bincount.out": "bincount",
        "aten::special_bessel_j0.out": "bessel",
        "aten::histc.out": "histc",
    }
    assert found.keys() == wanted.keys()
    for name, text in wanted.items():
        assert found[name].source == f"test_all_gaps.py:{line_of(text)}"


def test_inputs_without_bounds_are_all_named():
    class Both(nn.Module):
        def forward(self, x, y):
            return x.relu(), y.sin()

    shapes = ({0: Dim("n")}, {1: Dim("m")})
    program = torch.export.export(
        Both(), (torch.ones(4, 2), torch.ones(2, 4)), dynamic_shapes=shapes
    )
    with pytest.raises(UnsupportedError, match=r"(?s)input 'x', dimension 0.*input 'y', dim"):
        to_edge(program).to_executorch()


def test_one_unbounded_size_is_an_error_of_its_own():
    program = torch.export.export(nn.ReLU(), (torch.ones(4, 2),), dynamic_shapes=({0: Dim("n")},))
    with pytest.raises(EmitError, match=r"no upper bound.*Dim\(name, max=...\)"):
        to_edge(program).to_executorch()


LIBRARY = nn.__file__.replace("torch/nn/__init__.py", "timm/layers/mlp.py")


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (["/models/model.py", nn.__file__], "model.py:1"),
        (["/models/model.py", LIBRARY, nn.__file__], "model.py:1"),
        (["/models/model.py", "/models/block.py", LIBRARY], "block.py:2"),
        ([LIBRARY, nn.__file__], "mlp.py:1"),
        ([nn.__file__], "__init__.py:1"),
    ],
)
def test_the_line_is_the_authors(files, wanted):
    trace = "\n".join(
        f'  File "{name}", line {i}, in forward\n    x' for i, name in enumerate(files, 1)
    )
    assert source_line(SimpleNamespace(meta={"stack_trace": trace})) == wanted


def test_dimension_names_travel(tmp_path, capsys):
    class Net(nn.Module):
        def forward(self, x, y):
            return torch.nn.functional.gelu(x) @ y.t(), y * 2

    batch, seq = Dim("batch", max=8), Dim("seq", max=64)
    shapes = ({0: batch, 1: seq}, {0: 2 * batch, 1: seq})
    inputs = (torch.ones(4, 6), torch.ones(8, 6))
    path = tmp_path / "net.pte"
    to_edge(torch.export.export(Net(), inputs, dynamic_shapes=shapes)).to_executorch().save(path)
    assert main(["show", str(path)]) == 0
    assert "x: float32[batch=" in capsys.readouterr().out
    assert main(["run", str(path), "--dim", "seq=5"]) == 0
    model = etx_runtime.load(path)

    def message(*sizes):
        with pytest.raises(ValueError) as caught:
            model(*(np.ones(size, np.float32) for size in sizes))
        return str(caught.value)

    assert "at most 8 (shape given: (9, 6); dimension 0 is 'batch')" in message((9, 6), (18, 6))
    assert "(shape given: (8, 7); dimension 1 is 'seq')" in message((4, 6), (8, 7))
    assert "must be 2 * batch = 8 with batch = 4" in message((4, 6), (10, 6))
