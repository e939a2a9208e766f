# SPDX-License-Identifier: BSD-3-Clause
"""All that keeps a program from a file is told at once, each with operator, module and line."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import etx_runtime
import numpy as np
import pytest
import torch
from etx_exir import (
    Bank,
    ExecutorchBackendConfig,
    MemoryPlanningPass,
    TargetMemoryMap,
    to_edge,
)
from etx_exir.errors import EmitError, LoweringError, PlanError
from etx_exir.ir.provenance import source_line
from etx_exir.lower.decompositions import OURS
from etx_exir.passes.normalize.lower_attention import LowerAttention
from etx_exir.target.check import UnsupportedError
from etx_schema import EtxError
from etx_schema.cli import main
from on_device import export
from torch import nn
from torch.export import Dim
from torch.nn.attention.flex_attention import flex_attention


class Gaps(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)

    def forward(self, x, i):
        inverse = torch.linalg.inv(self.head(x))
        counts = torch.bincount(i)
        bessel = torch.special.bessel_j0(x)
        return inverse, counts * 2, bessel, torch.special.airy_ai(x)


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
    expected = {
        "aten::linalg_inv_ex.inverse": "linalg.inv",
        "aten.bincount.default": "bincount",
        "aten::bincount.out": "bincount",
        "aten::special_bessel_j0.out": "bessel",
        "aten::special_airy_ai.out": "airy_ai",
    }
    assert found.keys() == expected.keys()
    for name, text in expected.items():
        assert found[name].source == f"test_all_gaps.py:{line_of(text)}"


@pytest.fixture
def operators(monkeypatch):
    """Operators whose results no kernel can return; a decomposition and a pass that fail."""

    def fails(*_):
        raise ValueError("only for two dimensions")

    def cannot(*_):
        raise LoweringError("only for two heads")

    monkeypatch.setitem(OURS, torch.ops.aten.logcumsumexp.default, fails)
    monkeypatch.setattr(LowerAttention, "rewrite", cannot)
    with torch.library._scoped_library("etx_gaps", "FRAGMENT") as library:
        library.define("part(Tensor(a) x) -> Tensor(a)")
        library.define("counted(Tensor x) -> (Tensor, int)")
        for key in ("CPU", "Meta"):
            library.impl("part", lambda x: x[:1], key)
            library.impl("counted", lambda x: (x + 1, 3), key)
        yield


class Attention(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x)


class Everything(nn.Module):
    """One gap of every kind, a line each."""

    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, n, i, deep):
        rows = n.relu()
        inverse = torch.linalg.inv(x)
        determinant = torch.linalg.det(x)
        spectrum = torch.fft.rfft(x)
        arc = spectrum.asin()
        counts = torch.bincount(i)
        values = torch.nonzero(x)
        folded = x.reshape([4, 4] + [1] * 15)
        small = x.to(torch.float8_e8m0fnu)
        part = torch.ops.etx_gaps.part(x)
        counted = torch.ops.etx_gaps.counted(x)[0]
        sums = torch.logcumsumexp(x, 0)
        attended = self.attention(x[None])
        flexible = flex_attention(x[None, None], x[None, None], x[None, None])
        tensors = [rows, inverse, determinant, arc.real, counts, values]
        tensors += [folded + 1, small.float(), part + 1, counted, sums, attended, flexible, deep]
        return {torch.float32: tensors}


KINDS = {
    "'n', dimension 0": "",
    "aten::linalg_inv_ex.inverse": "linalg.inv",
    "aten::_linalg_det.result": "linalg.det",
    "aten::asin.out with self": "spectrum.asin()",
    "aten.bincount.default: the size": "bincount",
    "aten::bincount.out": "bincount",
    "aten.view_copy.default: a tensor of 17 dimensions": "x.reshape",
    "copy.default: tensors of torch.float8_e8m0fnu": "float8_e8m0fnu",
    "etx_gaps.part.default: its result shares memory": "gaps.part",
    "etx_gaps.counted.default has no out variant": "gaps.counted",
    "aten.logcumsumexp.default: it cannot be decomposed: only for two": "logcumsumexp",
    "aten.scaled_dot_product_attention.default: only for two heads": "scaled_dot",
    "flex_attention: the operator": "flex_attention(",
    "deep: a tensor of 17 dimensions": "",
    "has keys that JSON cannot hold": "",
    "constant method 'answer'": "",
}


def test_a_gap_of_every_kind_is_told_at_once(operators):
    inputs = (torch.eye(4), torch.ones(5), torch.arange(4), torch.ones([1] * 17))
    shapes = {"x": None, "n": {0: Dim("n")}, "i": None, "deep": None}
    program = torch.export.export(Everything(), inputs, dynamic_shapes=shapes)
    manager = to_edge(program, constant_methods={"answer": object()})
    with pytest.raises(UnsupportedError) as caught:
        manager.to_executorch()
    lines, first = inspect.getsourcelines(Everything)
    for what, text in KINDS.items():
        (problem, *_) = [p for p in caught.value.problems if what in p.message]
        where = next((first + i for i, line in enumerate(lines) if text and text in line), None)
        if text == "scaled_dot":
            where = inspect.getsourcelines(Attention)[1] + 2
            assert problem.module == "attention"
        assert problem.source == (f"test_all_gaps.py:{where}" if text else ""), what


@pytest.mark.parametrize("kind", ["part", "counted", "logcumsumexp", "attention"])
def test_a_gap_alone_has_operator_and_line(kind, operators):
    calls = {
        "part": lambda x: torch.ops.etx_gaps.part(x) + 1,
        "counted": lambda x: torch.ops.etx_gaps.counted(x)[0],
        "logcumsumexp": lambda x: torch.logcumsumexp(x, 0),
        "attention": Attention(),
    }
    program = export(calls[kind], (torch.ones(1, 4, 4),))
    with pytest.raises(EtxError, match=rf"(?s){kind}.*\.py:\d+"):
        to_edge(program).to_executorch()


def test_memory_that_is_too_small_hides_no_missing_kernel():
    banks = TargetMemoryMap([Bank("sram", 512, 1)])
    config = ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(memory_map=banks))
    methods = {
        "one": export(lambda x: x.exp() @ x, (torch.ones(9, 9),)),
        "two": export(torch.special.bessel_j0, (torch.ones(2),)),
    }
    with pytest.raises(UnsupportedError) as caught:
        to_edge(methods).to_executorch(config)
    assert {(p.method, p.kind) for p in caught.value.problems} == {
        ("one", "memory"),
        ("two", "operator"),
    }
    del methods["two"]
    with pytest.raises(PlanError):
        to_edge(methods).to_executorch(config)


def test_what_the_compiler_itself_does_wrong_is_not_hidden(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("etx_exir.emit.graph.operator_call", broken)
    with pytest.raises(ZeroDivisionError):
        to_edge(export(torch.sin, (torch.ones(2),))).to_executorch()


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
    ("files", "expected"),
    [
        (["/models/model.py", nn.__file__], "model.py:1"),
        (["/models/model.py", LIBRARY, nn.__file__], "model.py:1"),
        (["/models/model.py", "/models/block.py", LIBRARY], "block.py:2"),
        ([LIBRARY, nn.__file__], "mlp.py:1"),
        ([nn.__file__], "__init__.py:1"),
    ],
)
def test_the_line_is_the_authors(files, expected):
    trace = "\n".join(
        f'  File "{name}", line {i}, in forward\n    x' for i, name in enumerate(files, 1)
    )
    assert source_line(SimpleNamespace(meta={"stack_trace": trace})) == expected


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
