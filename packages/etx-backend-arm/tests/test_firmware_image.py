# SPDX-License-Identifier: BSD-3-Clause
"""Several models in one firmware: their names, memory and tests, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
import torch
from etx_backend_arm.firmware import command
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_exir.plan import MemoryPlanningPass
from etx_schema.errors import EtxError
from test_firmware import PACKAGES, firmware, memory
from torch import nn

WORDS = ("--target", "cortex-m4", "--sources", PACKAGES, "--stack", 4096)


class Counter(nn.Module):
    """The sum of all that it was given."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2


class Reader(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.total - x


def save(path: Path, is_shared: bool = True, **methods: nn.Module) -> Path:
    """Write a file of methods that take four numbers; state of one name `is_shared`."""
    programs = {n: torch.export.export(m, (torch.ones(4),)) for n, m in methods.items()}
    plan = MemoryPlanningPass(share_mutable_buffers=is_shared)
    config = ExecutorchBackendConfig(memory_planning_pass=plan)
    to_edge(programs).to_executorch(config).save(path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "in").mkdir()
    small = save(tmp_path / "in" / "small-net.pte", forward=nn.Linear(4, 2).eval())
    large = nn.Sequential(nn.Linear(4, 100), nn.Tanh(), nn.Linear(100, 50)).eval()
    return small, save(tmp_path / "in" / "large.pte", forward=large)


def ram(text: str) -> int:
    (line,) = (line for line in text.split("together\n")[-1].splitlines() if line[:4] == "RAM ")
    return int(line.split()[1].replace(",", ""))


def test_each_model_has_a_name_a_test_and_memory(
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, words = tmp_path / "f", ("--target", "cortex-m4", "--json", "--sources", PACKAGES)
    assert firmware(*files, *WORDS, "-o", out) == 0
    apart = (out / "memory.txt").read_text()
    assert apart.startswith("small_net: forward of small-net.pte\n")
    for name, path in zip(("small_net", "large"), files, strict=True):
        assert f"namespace etx_firmware::{name} {{" in (out / f"etx_firmware/{name}.h").read_text()
        assert (out / "model" / f"{name}.pte").read_bytes() == path.read_bytes()
        given, expected = (
            np.fromfile(out / "model" / f"{name}_{kind}0.bin", np.float32)
            for kind in ("input", "output")
        )
        np.testing.assert_array_equal(etx_runtime.load(path)(given), expected)
    chosen = (out / "kernels" / "etx_selection.h").read_text()
    assert chosen.count("aten::linear.out") == 1
    assert "aten::tanh.out" in chosen
    assert firmware(*files, *WORDS, "-o", out, "--share-arenas") == 0
    shared = (out / "memory.txt").read_text()
    assert "planned arena 1           608 bytes  (of small_net, large in turn)" in shared
    capsys.readouterr()
    memory(*files, *words)
    rows = json.loads(capsys.readouterr().out)["methods"]
    assert [row["temporary"] for row in rows] == [0, 0]
    assert ram(apart) - ram(shared) == min(row["arenas"]["1"] for row in rows)
    monkeypatch.setattr(command, "have_tools", lambda names: False)
    memory(*files, *words, "--share-arenas")
    assert json.loads(capsys.readouterr().out)["shared"] == {"arena_1": 608}


def test_methods_link_their_file_once_and_keep_their_state(tmp_path: Path) -> None:
    path = save(tmp_path / "net.pte", False, add=Counter(), read=Reader(), other=nn.Tanh())
    other, out = save(tmp_path / "tanh.pte", forward=nn.Tanh()), tmp_path / "f"
    assert firmware(path, f"last={other}", *WORDS, "-o", out, "--share-arenas") == 0
    assert sorted(p.name for p in (out / "model").glob("*.pte")) == ["last.pte", "net_add.pte"]
    header = (out / "etx_arenas.h").read_text()
    arenas = set(re.findall(r"(\w+)\[", header)) - {"temporary"}
    assert arenas == {"arena_1", "net_add_arena_1"}
    text = (out / "memory.txt").read_text()
    assert "planned arena 1            16 bytes  (of net_other, net_read, last in turn)" in text
    assert firmware(path, *WORDS, "-o", out, "--method", "read") == 0
    assert (out / "etx_firmware" / "model.h").is_file()


def test_state_in_common_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "net.pte", add=Counter(), read=Reader(), other=nn.Tanh())
    with pytest.raises(EtxError, match=r"net\.pte: add and read have state in common \(total\)"):
        firmware(path, *WORDS, "-o", tmp_path / "f")
    assert firmware(path, *WORDS, "-o", tmp_path / "f", "--method", "add", "--library") == 0


def test_names_that_cannot_be_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    small, large = files
    (tmp_path / "other").mkdir()
    same, number = tmp_path / "other" / "large.pte", tmp_path / "other" / "2.pte"
    same.write_bytes(large.read_bytes())
    number.write_bytes(large.read_bytes())
    rows = [
        ((small, small), r"small-net\.pte is given twice"),
        ((large, same), r"large is the name of forward of .*in/large\.pte and of .*give a name"),
        ((large, number), r"'2', of .*2\.pte, cannot be a name in C\+\+: give a name"),
        ((large, f"class={same}"), r"'class', of .*cannot be a name"),
        ((large, small, "--input", "x.npy"), "--input is of one model"),
        ((large, small, "--method", "go"), r"large\.pte has no method 'go' \(it has: forward\)"),
        (
            (large, small, "--target", "cortex-m4", "--temp", 3 << 20),
            r"large\.pte, .*small-net\.pte need 6,29",
        ),
    ]
    for words, reason in rows:
        with pytest.raises(EtxError, match=reason):
            firmware(*words, *(WORDS if "--target" not in words else ()), "-o", tmp_path / "f")
        assert not (tmp_path / "f").exists()
    assert firmware(large, f"second={same}", *WORDS, "-o", tmp_path / "f", "--library") == 0
    text = (tmp_path / "f" / "etx_firmware.h").read_text()
    assert "X(large) X(second)" in text


def test_a_model_of_another_target_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pte"
    to_edge(torch.export.export(nn.GELU(), (torch.ones(4),))).to_executorch().save(wrong)
    wrong.write_bytes(wrong.read_bytes().replace(b"aten::gelu", b"aten::golu"))
    with pytest.raises(EtxError, match=r"wrong\.pte: no kernel for cortex-m4 computes aten::golu"):
        firmware(files[0], wrong, *WORDS, "-o", tmp_path / "f", "--library")


def test_dynamic_shapes_are_refused_with_operator_and_line(tmp_path: Path) -> None:
    net, batch = nn.Linear(4, 3).eval(), torch.export.Dim("batch", max=4)
    program = torch.export.export(net, (torch.ones(2, 4),), dynamic_shapes=({0: batch},))
    path = tmp_path / "net.pte"
    to_edge(program).to_executorch().save(path)
    reason = (
        r"net\.pte: input 0 of forward: a dynamic shape, at aten::linear\.out \(instruction 0, "
        r"linear\.py:\d+\), and firmware is static"
    )
    with pytest.raises(EtxError, match=reason):
        firmware(path, *WORDS, "-o", tmp_path / "f")
    with pytest.raises(EtxError, match=reason):
        memory(path, "--target", "cortex-m4")
    assert not (tmp_path / "f").exists()
