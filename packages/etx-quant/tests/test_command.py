# SPDX-License-Identifier: BSD-3-Clause
"""`etx compile --quantize` with this package installed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import sysconfig
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from etx_schema import ScalarType, read_pte
from etx_schema.cli import main

MODEL = """
import torch

class Net(torch.nn.Module):
    example_inputs = (torch.ones(2, 3, 8, 8),)

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Conv2d(3, 8, 3)
        self.head = torch.nn.Linear(8 * 36, 10)

    def forward(self, image):
        return self.head(self.body(image).relu().flatten(1))
"""


LAYERS = "torch.nn.Sequential(torch.nn.Linear(8 * 36, 10), torch.nn.Linear(10, 3))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    images = np.random.default_rng(0).random((8, 3, 8, 8), np.float32)
    np.savez(tmp_path / "images.npz", image=images)
    np.savez(tmp_path / "wrong.npz", image=np.where(images > 0.999, np.nan, images))
    return tmp_path


COMMAND = ("compile", "model.py:Net", "-o", "net.pte")


def etx(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, with the warnings that are shown by a new one."""
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.delitem(sys.modules, "model", raising=False)
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        with redirect_stdout(output), redirect_stderr(errors):
            code = main([*COMMAND, *arguments])
    return subprocess.CompletedProcess(COMMAND, code, output.getvalue(), errors.getvalue())


def new_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sysconfig.get_path("scripts")) / "etx"
    command = [str(program), *COMMAND, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_from_a_model_and_data_to_a_file(folder: Path) -> None:
    done = new_process(
        folder,
        *("--quantize", "int8", "--calibrate", "images.npz", "--target-sqnr", "30"),
        *("--quantize-report", "report.json", "--json", "--progress", "always"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["quantization"]
    assert report == json.loads((folder / "report.json").read_text())
    assert [layer["name"] for layer in report["layers"]] == ["body", "head"]
    assert report["sqnr"] > 30
    assert "calibrating (4/4)" in done.stderr
    assert (folder / "net.pte").stat().st_size < 12_000


def test_the_table_is_printed(folder: Path) -> None:
    done = etx(folder, "--quantize", "int4", "--quantize-report", "-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["layer", "operator"]
    assert "int4: SQNR" in done.stdout


def test_a_mistake_is_a_line(folder: Path) -> None:
    done = etx(folder, "--quantize", "int8", "--calibrate", "wrong.npz")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("etx")]
    assert "--quantize int8: calibration, batch" in line
    assert "argument 'image'" in line
    assert "values are not finite" in line
    assert not (folder / "net.pte").exists()


def test_integers_cross_the_edges(folder: Path) -> None:
    done = etx(folder, "--quantize", "int8", "--calibrate", "images.npz", "--int8-io")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "put 0: int8, zero point" in line]
    assert [line.split()[0] for line in lines] == ["input", "output"]
    (plan,) = read_pte(folder / "net.pte").program.execution_plan
    tensors = [plan.values[i].val for i in (*plan.inputs, *plan.outputs)]
    assert [tensor.scalar_type for tensor in tensors] == [ScalarType.CHAR, ScalarType.CHAR]


def test_only_static_int8_has_integers_at_its_edges(folder: Path) -> None:
    done = etx(folder, "--quantize", "int8-dynamic", "--int8-io")
    assert done.returncode != 0
    assert "--int8-io goes with --quantize int8; int8-dynamic reads inputs in float" in done.stderr


def test_nothing_is_said_of_torchaos_own_kernels(folder: Path) -> None:
    done = new_process(folder, "--quantize", "int8-dynamic", "--progress", "never")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_target_that_only_float_reaches_is_a_line_and_a_file(folder: Path) -> None:
    done = etx(folder, "--quantize", "int8-dynamic", "--target-sqnr", "200", "--progress", "never")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("etx: warning: --quantize int8-dynamic: target_sqnr=200 leaves every")
    assert "1 of 1 layers in float" in done.stdout
    assert (folder / "net.pte").exists()


def test_an_edge_that_stays_float_is_named(folder: Path) -> None:
    model = folder / "model.py"
    model.write_text(MODEL.replace("flatten(1))", "flatten(1)).softmax(1)"))
    done = etx(folder, "--quantize", "int8", "--calibrate", "images.npz", "--int8-io")
    assert done.returncode != 0
    assert "--quantize int8: --int8-io: output 0 (" in done.stderr
    assert "without --int8-io, or give --int8-inputs" in done.stderr
    assert not (folder / "net.pte").exists()


@pytest.mark.parametrize("side", ["input", "output"])
def test_one_side_is_integers(side: str, folder: Path) -> None:
    done = etx(folder, "--quantize", "int8", "--calibrate", "images.npz", f"--int8-{side}s")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "put 0: int8, zero point" in line]
    assert [line.split()[0] for line in lines] == [side]
    (plan,) = read_pte(folder / "net.pte").program.execution_plan
    types = {"input": plan.inputs, "output": plan.outputs}
    found = {name: plan.values[each[0]].val.scalar_type for name, each in types.items()}
    (other,) = types.keys() - {side}
    assert found == {side: ScalarType.CHAR, other: ScalarType.FLOAT}


def test_groups_and_what_stays_float_are_options(folder: Path) -> None:
    text = MODEL.replace("torch.nn.Linear(8 * 36, 10)", LAYERS)
    (folder / "model.py").write_text(text)
    done = etx(folder, "--quantize", "int4")
    assert done.returncode != 0
    assert "layer 'head.1': a row of its weight has 10 numbers" in done.stderr
    assert "choose another --group-size, or leave the layer in float with" in done.stderr
    assert "with --keep-float head.1" in done.stderr
    for options in (["--keep-float", "head.1"], ["--group-size", "2"]):
        done = etx(folder, "--quantize", "int4", *options)
        assert done.returncode == 0, done.stderr
    done = etx(folder, "--quantize", "int4", "--keep-float", "tail")
    assert "--keep-float: the model has no module 'tail'" in done.stderr
