# SPDX-License-Identifier: BSD-3-Clause
"""What `etx firmware` writes and refuses; what it writes is built and run by `nox -s machines`."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.firmware import command
from etx_backend_arm.firmware.build import BUILDING, TOOLS
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from etx_schema.commands import memory as memory_command
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
    given = np.fromfile(folder / "model" / "model_input0.bin", np.float32).reshape(2, 4)
    expected = np.fromfile(folder / "model" / "model_output0.bin", np.float32).reshape(2, 3)
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


@pytest.mark.parametrize("chosen", [(), ("--method", "forward")])
def test_scratch_lies_in_the_arena_of_a_method_named_or_not(
    chosen: tuple[str, ...], tmp_path: Path
) -> None:
    x = torch.linspace(-1, 1, 2 * 8 * 8).reshape(1, 2, 8, 8)
    quantized = quantize(nn.Conv2d(2, 3, 3).eval(), [(x,)], CortexMQuantizer())
    edge = lower_to_cortex_m(to_edge(torch.export.export(quantized, (x,))))
    path = tmp_path / "net.pte"
    edge.to_executorch(ExecutorchBackendConfig(target=None)).save(path)
    words = ("--target", "cortex-m4", "--sources", PACKAGES, "--stack", 4096, *chosen)
    assert firmware(path, *words, "-o", tmp_path / "f") == 0
    assert "in arena 1, beside what is live" in (tmp_path / "f" / "memory.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--target", "cortex-m99"), "unknown target 'cortex-m99': expected one of cortex-m0plus"),
        (
            ("--target", "cortex-m4+ethos-u55-128"),
            r"expected cortex-m55\+NPU, NPU one of ethos-u55",
        ),
        (("--target", "cortex-m4", "--method", "other"), "has no method 'other'"),
        (("--target", "cortex-m4", "--temp", -5), "--temp -5: expected bytes, at least 0"),
        (("--target", "cortex-m4", "--stack", 0), "--stack 0: expected bytes, at least 256"),
        (("--target", "cortex-m4", "--temp", 4 << 20), "bytes of RAM and mps2-an386 has 4,194,304"),
        (("--target", "cortex-m4", "--sources", "."), "has no etx-runtime"),
        (("--target", "cortex-m4", "--tolerance", "nan"), "--tolerance nan: expected a finite"),
        (("--target", "cortex-m4", "--tolerance", "inf"), "--tolerance inf: expected a finite"),
        (("--target", "cortex-m4", "--tolerance", -1), "--tolerance -1.0: expected a finite"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(
    model: Path, tmp_path: Path, arguments: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(EtxError, match=reason):
        firmware(model, "-o", tmp_path / "f", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tool", ["cmake", "arm-none-eabi-g++", "qemu-system-arm", "cc"])
def test_a_missing_tool_is_named_with_what_installs_it(
    model: Path, tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        if name != tool:
            (tools / name).write_text("#!/bin/sh\nexit 1\n")
            (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    words = [str(model), "--target", "cortex-m4"]
    reason = re.escape(f"{tool} is not in PATH, and ")
    with pytest.raises(EtxError, match=reason + "counting needs it: .*install .+"):
        command.target_counts(words[:1], words[1:])
    if tool in BUILDING:
        with pytest.raises(EtxError, match=reason + "--size needs it: .*install .+"):
            firmware(*words, "-o", tmp_path / "f", "--size")
    assert list(tmp_path.iterdir()) == [tools]


BANKS = [
    {"name": "flash", "origin": 0, "size": "256K"},
    {"name": "ram", "origin": "0x20000000", "size": "16K"},
    {"name": "fast", "origin": "0x10000000", "size": 64, "mem_id": 1},
]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "the board .*json: Expecting property name"),
        ("[]", "expected an object with .banks., rows of name, origin, size"),
        ('{"banks": [{"origin": 0}]}', "no 'name'; expected an object"),
        (json.dumps({"banks": BANKS[:1]}), "has no bank ram with origin and size"),
        (json.dumps({"banks": [*BANKS[:2], {**BANKS[2], "size": "64 B"}]}), "size='64 B'"),
        (json.dumps({"banks": [*BANKS[:2], {**BANKS[2], "name": "my ram"}]}), "bank 'my ram'"),
        (
            json.dumps({"banks": [BANKS[0], {**BANKS[1], "size": "1M"}, {**BANKS[2], "size": 32}]}),
            "needs 64 bytes of FAST and board has 32",
        ),
        (
            json.dumps({"banks": [BANKS[0], {**BANKS[1], "size": "2K"}, BANKS[2]]}),
            r"needs [\d,]+ bytes of RAM and board has 2,048",
        ),
    ],
)
def test_a_board_that_cannot_be_is_refused(
    model: Path, tmp_path: Path, text: str, reason: str
) -> None:
    board = tmp_path / "board.json"
    board.write_text(text)
    words = ("--target", "cortex-m4", "-o", tmp_path / "f", "--board", board)
    with pytest.raises(EtxError, match=reason):
        firmware(model, *words)
    with pytest.raises(EtxError, match="cannot read the board"):
        firmware(model, *words[:-1], tmp_path / "none.json")
    assert list(tmp_path.iterdir()) == [board]


def test_an_arena_lies_in_the_bank_of_its_number(model: Path, tmp_path: Path) -> None:
    board, folder = tmp_path / "board.json", tmp_path / "f"
    board.write_text(json.dumps({"banks": [*BANKS[:2], {**BANKS[2], "size": "1K"}]}))
    words = ("--target", "cortex-m4", "-o", folder, "--sources", PACKAGES, "--stack", 1024)
    assert firmware(model, *words, "--board", board, "--temp", 256) == 0
    script = (folder / "board" / "memory.ld").read_text()
    assert "FAST (rw) : ORIGIN = 0x10000000, LENGTH = 1024" in script
    assert "SECTIONS { .fast (NOLOAD) : { *(.arenas.1) } > FAST }" in script
    assert "add_test" not in (folder / "CMakeLists.txt").read_text()


def test_a_library_has_no_main_and_no_board(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "f"
    words = ("--target", "cortex-m4", "-o", folder, "--sources", PACKAGES, "--library")
    assert firmware(model, *words) == 0
    assert not {path.name for path in folder.iterdir()} & {"main.cpp", "board"}
    text = (folder / "CMakeLists.txt").read_text()
    assert "add_library(etx_firmware STATIC" in text
    assert "toolchain" not in text
    assert "that of your build" in (folder / "memory.txt").read_text()
    with pytest.raises(EtxError, match="--library makes none"):
        firmware(model, *words, "--size")


def test_a_folder_of_somebody_else_is_left(model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(EtxError, match="was not written by etx firmware"):
        firmware(model, "--target", "cortex-m4", "-o", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_that_is_not_a_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.pte").write_bytes(b"no program")
    with pytest.raises(EtxError, match=r"net\.pte"):
        firmware(tmp_path / "net.pte", "--target", "cortex-m4", "-o", tmp_path / "f")


def memory(*arguments: object) -> None:
    parser = argparse.ArgumentParser()
    memory_command.register(parser.add_subparsers())
    options = parser.parse_args(["memory", *map(str, arguments)])
    options.run(options)


def test_memory_of_a_target_is_that_of_its_firmware(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "have_tools", lambda names: False)
    words = ("--target", "cortex-m4")
    assert firmware(model, *words, "-o", tmp_path / "f", "--sources", PACKAGES) == 0
    capsys.readouterr()
    memory(model, *words)
    printed = capsys.readouterr().out
    title = f"{model} on cortex-m4\n"
    assert printed == title + (tmp_path / "f" / "memory.txt").read_text()
    memory(model, *words, "--json")
    document = json.loads(capsys.readouterr().out)
    (row,) = document["methods"]
    apart = document["stack"] + (0 if row["temporary_is_planned"] else row["temporary"])
    assert row["arenas"]["1"] > 0
    assert document["ram"] == sum(row["arenas"].values()) + row["method_arena"] + apart


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--target", "cortex-m99"), "unknown target 'cortex-m99'"),
        (("--target", "cortex-m4", "-o", "m.svg"), "-o draws arenas"),
        (("--target", "cortex-m4", "--board", "none.json"), "cannot read the board"),
        (("--board", "none.json"), "--board is of a target"),
    ],
)
def test_memory_of_no_target_is_refused(
    model: Path, arguments: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(EtxError, match=reason):
        memory(model, *arguments)


def test_an_operator_without_a_kernel_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "net.pte"
    to_edge(torch.export.export(nn.GELU(), (torch.ones(4),))).to_executorch().save(path)
    data = path.read_bytes()
    assert data.count(b"aten::gelu") == 1
    path.write_bytes(data.replace(b"aten::gelu", b"aten::golu"))
    words = ("--target", "cortex-m4", "-o", tmp_path / "f", "--sources", PACKAGES)
    stated = (
        r"no kernel for cortex-m4 computes aten::golu.out \(instruction 0 of forward.*operators"
    )
    with pytest.raises(EtxError, match=stated):
        firmware(path, *words, "--library")
    assert [each.name for each in tmp_path.iterdir()] == ["net.pte"]
