# SPDX-License-Identifier: BSD-3-Clause
"""What each command prints with --json is what its table of fields says."""

from __future__ import annotations

import json
from importlib.metadata import distribution
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from etx_devtools.documents import FIELDS, schema
from etx_schema import cli, read_pte, write_pte

MODEL = """
import torch


def net():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU())
    return model.eval(), (torch.randn(2, 4),)
"""
COMMANDS = [
    "bundle net.pte --inputs a.npz -o more.bpte",
    "bundle net.pte --inputs a.npz --eager documented_net.py:net -o more.bpte",
    "verify net.bpte",
    "size net.pte --by module",
    "diff net.pte other.pte",
    "diff net.pte other.pte --run --fail-if size>0",
    "profile net.pte",
    "profile net.pte --by module",
    "profile net.pte other.pte --by instruction",
    "profile net.pte --by line",
    "profile net.pte --by instruction",
    "compare net.pte --eager documented_net.py:net",
    "compare other.pte --eager documented_net.py:net",
    "report net.pte -o r.html",
    "report net.pte other.pte --run --eager documented_net.py:net -o r.html",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        Path("documented_net.py").write_text(MODEL)
        np.savez("a.npz", np.ones((2, 4), np.float32))
        assert cli.main(["compile", "documented_net.py:net", "-o", "net.pte", "--stages"]) == 0
        eager = ["--eager", "documented_net.py:net"]
        assert not cli.main(["bundle", "net.pte", "--inputs", "a.npz", *eager, "-o", "net.bpte"])
        pte = read_pte("net.pte")
        for operator in pte.program.execution_plan[0].operators:
            if operator.name == "aten::relu":
                operator.name = "aten::neg"
        write_pte(pte, "other.pte")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_documents_are_as_described(command, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    capsys.readouterr()
    cli.main([*command.split(), "--json"])
    document = json.loads(capsys.readouterr().out)
    name = command.split()[0]
    is_of_two = command.startswith("profile net.pte other.pte")
    jsonschema.validate(document, schema("profile of two" if is_of_two else name))
    for each in document["files"] if is_of_two else ():
        jsonschema.validate(each, schema(name))


def test_every_command_is_described():
    points = distribution("etx-devtools").entry_points
    assert {each.name for each in points if each.group == "etx.commands"} == {
        command.partition(" ")[0] for command in FIELDS
    }


@pytest.mark.parametrize("command", FIELDS)
def test_schemas_are_schemas(command):
    jsonschema.Draft202012Validator.check_schema(schema(command))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({}, schema(command))
