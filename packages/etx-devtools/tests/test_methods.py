# SPDX-License-Identifier: BSD-3-Clause
"""Every command on files whose methods are not called forward, and on the same file of arrays."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from etx_schema import cli

NET = """
import torch
from torch import nn


def method():
    torch.manual_seed(0)
    return nn.Linear(4, 3).eval(), (torch.ones(2, 4),)


def one():
    return {"encode": method()}


def two():
    return {"encode": method(), "decode": method()}
"""
COMMANDS = (
    "show {f}",
    "check {f}",
    "memory {f}",
    "size {f}",
    "strip {f} -o stripped.pte",
    "run {f} --input {x}",
    "run {f} --input {x} --etdump out.etdp --values all",
    "bench {f} --input {x} --iterations 2",
    "bundle {f} --inputs {x} --eager methods_net.py:{n} -o out.bpte",
    "verify out.bpte",
    "compare {f} --eager methods_net.py:{n} --inputs {x}",
    "compare {f} --eager methods_net.py:{n} --inputs {x} --etdump out.etdp",
    "compare {f} --against {f} --inputs {x}",
    "diff {f} {f} --run",
    "profile {f} --input {x} --executions 2",
    "profile {f} {f} --input {x} --executions 2",
    "profile {f} --etdump out.etdp",
    "report {f} --run -o out.html",
    "report {f} --etdump out.etdp -o out.html",
    "report {f} --eager methods_net.py:{n} --inputs {x} -o out.html",
)
NEED_ONE = ("run", "bench", "bundle", "profile")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("methods")
    (path / "methods_net.py").write_text(NET)
    np.savez(path / "by_name.npz", input=np.ones((2, 4), np.float32))
    np.savez(path / "other.npz", image=np.ones((2, 4), np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setattr(sys, "path", [str(path), *sys.path])
        for name in ("one", "two"):
            assert cli.main(["compile", f"methods_net.py:{name}", "-o", f"{name}.pte"]) == 0
    return path


def etx(text: str, name: str, arrays: str) -> int:
    return cli.main(text.format(f=f"{name}.pte", n=name, x=f"{arrays}.npz").split())


def test_the_only_method_is_the_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    codes = {command: etx(command, "one", "by_name") for command in COMMANDS}
    assert codes == dict.fromkeys(COMMANDS, 0)


def test_of_several_one_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for command in COMMANDS:
        words = command.split()
        if words[0] not in NEED_ONE:
            continue
        assert etx(command, "two", "by_name") == 2
        assert "no method 'forward' (it has: decode, encode); name one" in capsys.readouterr().err
        assert etx(f"{command} --method decode", "two", "by_name") == 0
        capsys.readouterr()


def test_an_array_of_no_input_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for command in (command for command in COMMANDS if "{x}" in command):
        assert etx(command, "one", "other") == 2
        assert "other.npz: the array 'image' is of no input" in capsys.readouterr().err
