# SPDX-License-Identifier: BSD-3-Clause
"""`etx compile --quantize`: what the compiler does with a package that quantizes."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import etx_exir.quantization
import numpy as np
import pytest
import torch
from etx_exir.commands import register
from etx_exir.load_model import Source
from etx_exir.quantization import read_calls
from etx_schema import EtxError, EtxWarning, ScalarType, read_pte
from torch import nn

MODEL = """
import torch

class Net(torch.nn.Module):
    example_inputs = (torch.ones(2, 3),)

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.layer(x)

def two():
    return {"a": Net(), "b": Net()}
"""


class Doubt(UserWarning):
    """What the package warns with."""


class Report:
    """What a package returns beside the module."""

    edges = (SimpleNamespace(kind="input", index=0, scale=0.5, zero_point=3),)

    def document(self) -> dict[str, Any]:
        return {"sqnr": 40.0}

    def svg(self) -> str:
        return "<svg/>"

    def summary(self) -> str:
        return "int8: fine"

    def __str__(self) -> str:
        return "layer  SQNR"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Make a package that quantizes installed, and return what it is called with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("model_of_test.py").write_text(MODEL)
    monkeypatch.delitem(sys.modules, "model_of_test", raising=False)
    made: list[Any] = []

    def quantize(module: nn.Module, batches: list[Any], **options: Any) -> tuple[nn.Module, Report]:
        if options["recipe"] == "int1":
            raise ValueError("recipe 'int1': expected int8")
        if options["target_sqnr"] == 200:
            warnings.warn("only float reaches it", Doubt, stacklevel=1)
        made.append((batches, options))
        return nn.ReLU(), Report()

    monkeypatch.setattr(etx_exir.quantization, "_quantizer", lambda: quantize)
    return made


def etx(*arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    options = parser.parse_args(["compile", "model_of_test.py:Net", "-o", "net.pte", *arguments])
    return options.run(options)


def test_the_module_is_quantized_before_it_is_captured(
    calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("data.npz", x=np.zeros((6, 3)))
    etx("--quantize", "int8", "--calibrate", "data.npz", "--target-sqnr", "30", "--json")
    ((batches, options),) = calls
    assert [x.shape for (x,) in batches] == [(2, 3)] * 3
    assert options["recipe"] == "int8"
    assert options["target_sqnr"] == 30
    facts = json.loads(capsys.readouterr().out)
    assert facts["quantization"] == {"sqnr": 40.0}
    assert b"relu" in Path("net.pte").read_bytes()


@pytest.mark.parametrize(
    ("name", "text"), [("r.json", '{\n "sqnr": 40.0\n}'), ("r.svg", "<svg/>"), ("-", "layer  SQNR")]
)
def test_the_report_is_written(
    name: str, text: str, calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    etx("--quantize", "int8-dynamic", "--quantize-report", name)
    out = capsys.readouterr().out
    if name == "-":
        assert text in out
    else:
        assert Path(name).read_text() == text
        assert "int8: fine" in out
    assert len(calls[0][0]) == 1


def test_warnings_of_the_package_are_ours(calls: list[Any]) -> None:
    with pytest.warns(EtxWarning, match="^--quantize int4: only float reaches it$"):
        etx("--quantize", "int4", "--target-sqnr", "200")
    assert len(calls) == 1


def test_examples_are_integers_where_the_module_takes_them(calls: list[Any]) -> None:
    np.savez("data.npz", x=np.zeros((6, 3)))
    etx("--quantize", "int8", "--calibrate", "data.npz", "--int8-io")
    assert calls[0][1]["int8_io"]
    (plan,) = read_pte("net.pte").program.execution_plan
    tensors = [plan.values[i].val for i in (*plan.inputs, *plan.outputs)]
    assert [tensor.scalar_type for tensor in tensors] == [ScalarType.CHAR, ScalarType.CHAR]


WRONG = {
    "integers but no recipe": (("--int8-io",), "--int8-io goes with --quantize"),
    "integers of a float recipe": (("--quantize", "int4", "--int8-io"), "int4 reads inputs in"),
    "one side of a float recipe": (("--quantize", "int4", "--int8-inputs"), "int4 reads inputs in"),
    "groups of another recipe": (
        ("--quantize", "int8-dynamic", "--group-size", "8"),
        "--group-size goes with --quantize int4; int8-dynamic has no groups",
    ),
    "no groups": (("--quantize", "int4", "--group-size", "0"), "--group-size 0: expected a number"),
    "float but no recipe": (("--keep-float", "head"), "--keep-float goes with --quantize"),
    "data but no recipe": (("--calibrate", "x.npz"), "--calibrate goes with --quantize"),
    "no data": (("--quantize", "int8"), "give calls of the model with --calibrate"),
    "report": (("--quantize", "int4", "--quantize-report", "r.png"), "ending in .json or .svg"),
    "no file": (("--quantize", "int8", "--calibrate", "no.npz"), "no.npz: no such file"),
    "text": (("--quantize", "int8", "--calibrate", "model_of_test.py"), "cannot be read as a .npy"),
    "recipe": (("--quantize", "int1"), "--quantize int1: recipe 'int1': expected int8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_lines(name: str, calls: list[Any]) -> None:
    arguments, message = WRONG[name]
    with pytest.raises(EtxError, match=message):
        etx(*arguments)
    assert not Path("net.pte").exists()


def test_several_methods_are_refused(calls: list[Any]) -> None:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    arguments = ["compile", "model_of_test.py:two", "-o", "two.pte", "--quantize", "int4"]
    options = parser.parse_args(arguments)
    with pytest.raises(EtxError, match="one method, this one has a, b"):
        options.run(options)


def test_the_package_is_named_where_it_is_missing(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(etx_exir.quantization, "contributions", lambda group: [])
    with pytest.raises(EtxError, match="etx-quant, which is not installed"):
        etx("--quantize", "int4")


class Two(nn.Module):
    def forward(self, x: torch.Tensor, at: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return x[at] * scale


EXAMPLE = (torch.ones(2, 3), torch.tensor([1]), 2.0)
F32, I64 = np.float32, np.int64


def read(tmp_path: Path, kwargs: dict[str, Any] | None = None, **arrays: Any) -> list[Any]:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    source = Source(Two(), EXAMPLE if kwargs is None else (), kwargs or {}, None)
    return read_calls(path, source)


def test_arrays_become_calls(tmp_path: Path) -> None:
    calls = read(tmp_path, x=np.ones((4, 3), F32), at=np.zeros((2, 1), I64))
    assert [(x.shape, at.shape, scale) for x, at, scale in calls] == [((2, 3), (1,), 2.0)] * 2
    calls = read(tmp_path, x=np.ones((2, 2, 3)), at=np.zeros(2, I64))
    assert [x.dtype for x, *_ in calls] == [torch.float32] * 2
    sizes = {"x.0": np.ones((1, 3), F32), "x.1": np.ones((5, 3), F32)}
    calls = read(tmp_path, **sizes, **{"at.0": np.zeros(1, I64), "at.1": np.zeros(3, I64)})
    assert [(x.shape, at.shape) for x, at, _ in calls] == [((1, 3), (1,)), ((5, 3), (3,))]
    (call,) = read(
        tmp_path, dict(zip(("x", "at"), EXAMPLE, strict=False)), x=np.ones((2, 3)), at=[0]
    )
    assert call.keys() == {"x", "at"}


class Inside(nn.Module):
    def forward(self, features: dict[str, torch.Tensor], pair: tuple[Any, ...]) -> torch.Tensor:
        return features["left"] + pair[0] * pair[1]


@pytest.mark.parametrize(
    "keys", [("features_left", "pair_0", "pair_1"), ("arr_0", "arr_1", "arr_2")]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_arrays_are_leaves_of_arguments(
    keys: tuple[str, ...], by_name: bool, tmp_path: Path
) -> None:
    x, y, z = (torch.full((2, 3), float(i)) for i in range(3))
    inputs = ({"left": x}, (y, z))
    kwargs = dict(zip(("features", "pair"), inputs, strict=True)) if by_name else {}
    source = Source(Inside(), () if by_name else inputs, kwargs, None)
    np.savez(tmp_path / "data.npz", **{k: np.full((2, 3), i, F32) for i, k in enumerate(keys)})
    (call,) = read_calls(tmp_path / "data.npz", source)
    features, (first, second) = call.values() if isinstance(call, dict) else call
    assert isinstance(call, dict) == by_name
    assert [float(each[0, 0]) for each in (features["left"], first, second)] == [0, 1, 2]
    if not by_name:
        program = torch.export.export(source.module, inputs)
        assert list(program.graph_signature.user_inputs) == ["features_left", "pair_0", "pair_1"]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "other name": ({"y": [1]}, "the array .y. is of no input; there are x, at"),
    "missing": ({"x": np.ones((2, 3))}, "no array of input at; it has 'x'"),
    "counts": ({"x": np.ones((4, 3)), "at": [0]}, "different numbers of calls: x 2, at 1"),
    "shape": ({"x": np.ones((3, 3)), "at": [0]}, r"\[3, 3\]; expected \[2, 3\]"),
    "dtype": ({"x": np.ones((2, 3), I64), "at": [0]}, "int64, the model's input is torch.float32"),
    "text": ({"x": np.full((2, 3), "a"), "at": [0]}, "its dtype is <U1, not one of numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_are_no_calls_are_refused(name: str, tmp_path: Path) -> None:
    arrays, message = BAD[name]
    with pytest.raises(EtxError, match=message):
        read(tmp_path, **arrays)
