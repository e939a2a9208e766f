# SPDX-License-Identifier: BSD-3-Clause
"""What `etx firmware` writes and refuses; what it writes is built and run by `nox -s machines`."""

from __future__ import annotations

import argparse
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.firmware import command
from etx_exir import to_edge
from etx_schema.errors import EtxError
from torch import nn

PACKAGES = Path(__file__).resolve().parents[2]


def firmware(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    options = parser.parse_args(["firmware", *map(str, arguments)])
    code: int = options.run(options)
    return code


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pte"
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    to_edge(torch.export.export(net, (torch.ones(2, 4),))).to_executorch().save(path)
    return path


def test_a_project_holds_what_it_is_built_from(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "f"
    words = (model, "--target", "cortex-m4", "-o", folder, "--sources", PACKAGES, "--stack", 4096)
    assert firmware(*words) == 0
    assert (folder / "memory.txt").read_text() in capsys.readouterr().out
    assert (folder / "model" / "model.pte").read_bytes() == model.read_bytes()
    given = np.fromfile(folder / "model" / "input0.bin", np.float32).reshape(2, 4)
    expected = np.fromfile(folder / "model" / "output0.bin", np.float32).reshape(2, 3)
    np.testing.assert_array_equal(etx_runtime.load(model)(given), expected)
    toolchain = (folder / "toolchain.cmake").read_text()
    assert "-mcpu=cortex-m4 -mfloat-abi=hard" in toolchain
    chosen = (folder / "kernels" / "etx_selection.h").read_text()
    assert "aten::linear.out" in chosen
    assert "convolution" not in chosen
    (folder / "main.cpp").write_text("// mine\n")
    (folder / "stale").write_text("")
    assert firmware(*words) == 0
    assert (folder / "main.cpp").read_text() == "// mine\n"
    assert not (folder / "stale").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--target", "cortex-m99"), "unknown target 'cortex-m99': expected one of cortex-m0plus"),
        (
            ("--target", "cortex-m4+ethos-u55-128"),
            r"expected cortex-m55\+NPU, NPU one of ethos-u55",
        ),
        (("--target", "cortex-m4", "--method", "other"), "has no method 'other'"),
        (("--target", "cortex-m4", "--temp", 4 << 20), "bytes of RAM and mps2-an386 has 4,194,304"),
        (("--target", "cortex-m4", "--sources", "."), "has no etx-runtime"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(
    model: Path, tmp_path: Path, arguments: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(EtxError, match=reason):
        firmware(model, "-o", tmp_path / "f", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_left(model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(EtxError, match="was not written by etx firmware"):
        firmware(model, "--target", "cortex-m4", "-o", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_dynamic_shape_is_refused(tmp_path: Path) -> None:
    net, batch = nn.Linear(4, 3).eval(), torch.export.Dim("batch", max=4)
    program = torch.export.export(net, (torch.ones(2, 4),), dynamic_shapes=({0: batch},))
    to_edge(program).to_executorch().save(tmp_path / "net.pte")
    words = ("--target", "cortex-m4", "-o", tmp_path / "f", "--sources", PACKAGES)
    with pytest.raises(EtxError, match="dynamic shape, and firmware is static"):
        firmware(tmp_path / "net.pte", *words)
    assert not (tmp_path / "f").exists()


def test_a_file_that_is_not_a_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.pte").write_bytes(b"no program")
    with pytest.raises(EtxError, match=r"net\.pte"):
        firmware(tmp_path / "net.pte", "--target", "cortex-m4", "-o", tmp_path / "f")
