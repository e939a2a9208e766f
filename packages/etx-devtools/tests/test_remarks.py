# SPDX-License-Identifier: BSD-3-Clause
"""A dump of a call that failed says where, and how much scratch memory instructions took."""

from __future__ import annotations

import json
import re
from pathlib import Path

import etx_runtime
import numpy as np
import pytest
import torch
from etx_devtools.profile.remarks import ERRORS
from etx_exir import to_edge
from etx_schema import cli


class Words(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 64)
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.sin(self.table(words)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A program, and a dump of two calls of which the second failed."""
    folder = tmp_path_factory.mktemp("failed")
    program = torch.export.export(Words().eval(), (torch.ones(1, 40, dtype=torch.int64),))
    to_edge(program).to_executorch().save(str(folder / "net.pte"))
    recorder = etx_runtime.Recorder()
    method = etx_runtime.Runtime.get().load_program(folder / "net.pte").load_method("forward")
    method.trace([np.ones((1, 40), np.int64)], recorder)
    with pytest.raises(etx_runtime.ExecutionError):
        method.trace([np.full((1, 40), 10)], recorder)
    recorder.save(folder / "net.etdp")
    return str(folder / "net.pte"), str(folder / "net.etdp")


def test_profile(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    model, dump = files
    assert cli.main(["profile", model, "--etdump", dump, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (failure,) = document["failures"]
    line = failure.pop("source")
    assert re.fullmatch(r"test_remarks\.py:\d+", line)
    assert failure == {
        "instruction": 0,
        "operator": "aten::embedding.out",
        "module": "table",
        "error": "InvalidArgument",
    }
    assert document["scratch_bytes"] > 0
    assert document["scratch_instruction"] in (0, 2)
    assert cli.main(["profile", model, "--etdump", dump]) == 0
    text = capsys.readouterr().out
    assert f"instruction 0 aten::embedding.out (table, {line}) failed: InvalidArgument\n" in text
    assert f"scratch memory: at most {document['scratch_bytes']:,} bytes, by instruction" in text


def test_report(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, dump = files
    arguments = ["report", model, "--etdump", dump, "-o", str(tmp_path / "a.html"), "--json"]
    assert cli.main(arguments) == 0
    first, second, *_ = json.loads(capsys.readouterr().out)["advice"]
    assert first.startswith("forward: instruction 0 aten::embedding.out (table, ")
    assert second.startswith("forward: scratch memory: at most ")


def test_names_of_errors() -> None:
    header = Path(etx_runtime.__file__).parent / "include" / "etx" / "error.h"
    found = re.findall(r"^  (\w+) = (0x\w+),$", header.read_text(), re.M)
    assert {int(number, 16): name for name, number in found if name != "Ok"} == ERRORS
