# SPDX-License-Identifier: BSD-3-Clause
"""What a firmware says of float operators and of a memory that is too small; a model apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.firmware import command
from etx_backend_arm.firmware.counts import Counts, aligned
from etx_backend_arm.firmware.counts import table as count_table
from etx_backend_arm.firmware.floats import INTEGER, float_calls, float_table
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from etx_schema.errors import EtxError
from etx_schema.pte_reader import read_pte
from test_firmware import PACKAGES, firmware, memory
from torch import nn

WORDS = ("--target", "cortex-m4", "--sources", PACKAGES, "--stack", 4096)
SIZE = 64


def write(path: Path, net: nn.Module, is_quantized: bool = True) -> Path:
    """Write a network of rows (2, SIZE) for a Cortex-M."""
    torch.manual_seed(0)
    inputs = [(torch.randn(2, SIZE),) for _ in range(4)]
    net = net.eval()
    if is_quantized:
        net = quantize(net, inputs, CortexMQuantizer())
    edge = to_edge(torch.export.export(net, inputs[0]))
    config = ExecutorchBackendConfig(target=None) if is_quantized else ExecutorchBackendConfig()
    (lower_to_cortex_m(edge) if is_quantized else edge).to_executorch(config).save(path)
    return path


def table(path: Path) -> str:
    pte = read_pte(path)
    return float_table(float_calls(pte, pte.program.execution_plan[0]))


def layers(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(SIZE, SIZE), *between, nn.Linear(SIZE, SIZE))


def test_integers_are_not_listed(tmp_path: Path) -> None:
    assert table(write(tmp_path / "net.pte", layers(nn.ReLU()))) == ""


def test_a_float_operator_has_a_reason_and_its_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "have_tools", lambda names: False)
    path = write(tmp_path / "net.pte", layers(nn.LayerNorm(SIZE)))
    text = table(path)
    assert text.startswith("in float: ")
    (norm,) = (line for line in text.splitlines() if "native_layer_norm" in line)
    assert f"bytes of values and {2 * 4 * SIZE:,} of weights; " in norm
    assert "a norm computes with the range of each row" in norm
    assert ".py:" in norm
    assert "what comes before computes in float" in text
    assert "what follows computes in float" in text
    memory(path, "--target", "cortex-m4", "--json", "--sources", PACKAGES)
    (method,) = json.loads(capsys.readouterr().out)["methods"]
    assert "aten::native_layer_norm.out" in {row["operator"] for row in method["float"]}
    assert firmware(path, *WORDS, "-o", tmp_path / "f") == 0
    assert text in (tmp_path / "f" / "memory.txt").read_text()


def test_a_float_model_is_one_line(tmp_path: Path) -> None:
    text = table(write(tmp_path / "net.pte", layers(nn.ReLU()), is_quantized=False))
    assert text.count("\n") == 2
    assert "the model is not quantized" in text


def test_what_has_a_counterpart_is_what_the_quantizer_takes() -> None:
    other = {"addmm": "linear", "mm": "linear", "convolution": "conv2d", "_softmax": "softmax"}
    other |= {"max_pool2d_with_indices": "max_pool2d", "permute_copy": "permute"}
    other |= {"select_copy": "select", "slice_copy": "slice", "view_copy": "view"}
    rows = {str(target).split(".")[1] for target in CortexMQuantizer.rows}
    assert {other.get(name, name) for name in INTEGER.split()} <= rows


def test_a_memory_that_is_too_small_names_the_peak(tmp_path: Path) -> None:
    path, board = write(tmp_path / "net.pte", layers(nn.ReLU())), tmp_path / "board.json"
    banks = [
        {"name": "flash", "origin": 0, "size": "256K"},
        {"name": "ram", "origin": "0x20000000", "size": "5K"},
    ]
    board.write_text(json.dumps({"banks": banks}))
    with pytest.raises(EtxError) as caught:
        firmware(path, *WORDS, "--board", board, "-o", tmp_path / "f")
    text = str(caught.value)
    assert "bytes of RAM and board has 5,120, " in text
    assert " too few:\n" in text
    assert "planned arena 1 is fullest at " in text
    assert "float32[2, 64]" in text
    assert ".py:" in text
    assert not (tmp_path / "f").exists()


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return write(tmp_path / "net.pte", layers(nn.ReLU()))


def test_a_model_lies_at_an_address(net: Path, tmp_path: Path) -> None:
    assert firmware(net, *WORDS, "-o", tmp_path / "f", "--model-at", "0x60000000") == 0
    blobs = (tmp_path / "f" / "model" / "blobs.S").read_text()
    assert ".set etx_model, 0x60000000" in blobs
    assert f".set etx_model_end, {0x60000000 + net.stat().st_size:#x}" in blobs
    assert 'incbin "model.pte"' not in blobs
    text = (tmp_path / "f" / "CMakeLists.txt").read_text()
    assert "loader,file=${CMAKE_CURRENT_LIST_DIR}/model/model.pte,addr=0x60000000" in text


@pytest.mark.parametrize("address", ["here", "-16", "0x60000001", "0x100000000"])
def test_an_address_that_cannot_be_is_refused(net: Path, tmp_path: Path, address: str) -> None:
    refused: Callable[..., int] = firmware
    with pytest.raises(EtxError, match="expected a multiple of 16, such as 0x60000000"):
        refused(net, *WORDS, "-o", tmp_path / "f", f"--model-at={address}")
    assert not (tmp_path / "f").exists()


def test_a_model_is_read_by_semihosting(net: Path, tmp_path: Path) -> None:
    assert firmware(net, *WORDS, "-o", tmp_path / "f", "--model-at", "semihosting") == 0
    blobs = (tmp_path / "f" / "model" / "blobs.S").read_text()
    assert f"etx_model:\n  .space {net.stat().st_size}\netx_model_end:" in blobs
    assert 'incbin "model.pte"' not in blobs
    assert "X(model)" in (tmp_path / "f" / "etx_firmware.h").read_text()
    assert "model, in RAM, too" in (tmp_path / "f" / "memory.txt").read_text()


def test_a_library_reads_no_model(net: Path, tmp_path: Path) -> None:
    refused: Callable[..., int] = firmware
    with pytest.raises(EtxError, match="--model-at semihosting is of an image, and --library"):
        refused(net, *WORDS, "-o", tmp_path / "f", "--library", "--model-at", "semihosting")


def test_memory_of_a_target_takes_the_options_of_its_firmware(
    net: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "have_tools", lambda names: False)
    given = ("--temp", 640, "--stack", 2048, "--method", "forward", "--model-at", "semihosting")
    memory(net, "--target", "cortex-m4", "--json", *given)
    found = json.loads(capsys.readouterr().out)
    assert found["stack"] == 2048
    assert [each["method"] for each in found["methods"]] == ["forward"]
    assert found["methods"][0]["temporary"] == 640
    assert found["ram"] > found["model"] == net.stat().st_size
    refused: Callable[..., None] = memory
    with pytest.raises(EtxError, match="--temp is of a target: add --target"):
        refused(net, "--temp", 640)


def test_operators_of_two_files_have_rows_together() -> None:
    before = Counts(9, (("conv", 4), ("add", 3), ("relu", 2)))
    after = Counts(6, (("conv", 5), ("relu", 1)))
    rows = [("conv", [4, 5]), ("add", [3, None]), ("relu", [2, 1])]
    assert aligned([before, after]) == rows
    lines = count_table(["a.pte", "b.pte"], [before, after]).splitlines()
    assert lines[1].split() == ["0", "conv", "4", "5", "+25.0%"]
    assert lines[2].split() == ["1", "add", "3"]
    assert lines[4].split() == ["one", "inference", "9", "6", "-33.3%"]
