# SPDX-License-Identifier: BSD-3-Clause
import argparse
import json
import re
import sys
import zlib
from pathlib import Path

import pytest
import torch
from etx_exir.commands import register
from etx_exir.delegation.backend_entry_points import register as register_backends
from etx_schema import EtxError
from toy import ToyPartitioner

SOURCE = """
import torch

class Net(torch.nn.Module):
    example_inputs = (torch.ones(2, 3),)

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)

    def forward(self, x):
        return (self.layer(x) + 1).relu()

def dynamic():
    return torch.nn.ReLU(), (torch.ones(4),), ({0: torch.export.Dim("n", max=8)},)

class Twice(torch.nn.Module):
    example_inputs = (torch.ones(2, 3),)

    def forward(self, x):
        return (x + x + 1).relu()

def methods():
    return {"one": (torch.nn.ReLU(), (torch.ones(2),)), "two": (torch.nn.ReLU6(), (torch.ones(2),))}

def bare():
    return torch.nn.ReLU()

class Sorted(torch.nn.Module):
    example_inputs = (torch.ones(2),)

    def forward(self, x):
        return x.sort(stable=True).values

def broken():
    raise ValueError("no weights")

def number():
    return 3

class Spread(torch.nn.Module):
    example_inputs = (torch.ones(1, 2, 4, 4),)

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(2, 2, 3, padding=1, groups=2)

    def forward(self, x):
        return self.layer(x) @ x

class Branching(torch.nn.Module):
    example_inputs = (torch.ones(2),)

    def forward(self, x):
        return x if x.sum() > 0 else -x

class Factored(torch.nn.Module):
    example_inputs = (torch.eye(3),)

    def forward(self, x):
        q, r = torch.linalg.qr(x)
        return torch.linalg.inv_ex(q @ r).inverse
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("model_of_test.py").write_text(SOURCE)
    yield "model_of_test.py"
    sys.modules.pop("model_of_test", None)


def etx(*arguments):
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    options = parser.parse_args(["compile", *map(str, arguments)])
    return options.run(options)


def test_a_file_comes_out(model, capsys):
    assert etx(f"{model}:Net", "-o", "net.pte") == 0
    assert Path("net.pte").read_bytes()[4:8] == b"ET12"
    captured = capsys.readouterr()
    assert captured.out.startswith("net.pte: ")
    assert "3 instructions" in captured.out
    assert captured.err == ""


def test_a_line_says_whether_executorch_runs_the_file(model, capsys):
    etx(f"{model}:Net", "-o", "net.pte")
    assert "\nit runs on ExecuTorch 1.5.1, too\n" in capsys.readouterr().out
    etx(f"{model}:Sorted", "-o", "net.pte")
    why = "it does not run on ExecuTorch 1.5.1, because of aten::sort.values_stable"
    assert f"\n{why}\n" in capsys.readouterr().out
    etx(f"{model}:Sorted", "-o", "net.pte", "--json")
    assert json.loads(capsys.readouterr().out)["executorch"]["runs"] is False
    with pytest.raises(EtxError, match="choose target etx, which has it"):
        etx(f"{model}:Sorted", "-o", "other.pte", "--target", "executorch")


def test_a_backend_of_ones_own_is_warned_of_in_a_line(model, capsys):
    Path("model_of_test.py").write_text(ADD)
    etx(f"{model}:Add", "-o", "net.pte", "--partitioner", "toy:ToyPartitioner")
    line = "etx: the device must have backend ToyBackend; to have this checked, lower for a .json "
    document = '{"name": "mine", "extends": ["etx"], "backends": ["ToyBackend"]}'
    assert capsys.readouterr().err == f"{line}file with {document}\n"


def test_precision_says_what_stays_and_how_far_results_are(model, capsys):
    etx(f"{model}:Net", "-o", "net.pte", "--precision", "bf16")
    out = capsys.readouterr().out
    assert "1 layers have their weights in bfloat16; what stays float32:" in out
    assert "2 others" in out
    found = re.search(r"largest error of forward relative to eager: ([\d.e+-]+) of the", out)
    assert 0 < float(found[1]) < 0.01
    etx(f"{model}:Spread", "-o", "net.pte", "--precision", "bf16", "--json")
    document = json.loads(capsys.readouterr().out)["precision"]
    assert [(row["operator"], row["times"]) for row in document["float32"]] == [
        ("aten.convolution.default", 1),
        ("aten.bmm.default", 1),
    ]
    assert "one channel" in document["float32"][0]["reason"]
    assert document["layers"] == 0
    assert document["errors"] == {"forward": 0.0}


def test_progress_where_there_is_no_terminal(model, capsys):
    etx(f"{model}:Net", "-o", "net.pte", "--progress", "always")
    err = capsys.readouterr().err
    assert [word for word in ("export", "decompose", "write") if word in err] == [
        "export",
        "decompose",
        "write",
    ]


def test_dynamic_shapes_from_the_factory(model):
    from etx_schema import read_pte

    etx(f"{model}:dynamic", "-o", "net.pte")
    (plan,) = read_pte("net.pte").program.execution_plan
    assert plan.values[plan.inputs[0]].val.sizes == [8]


def test_programs_after_each_pass(model, capsys):
    etx(f"{model}:Net", "-o", "net.pte", "--dump-passes", "--explain")
    names = [path.name for path in sorted(Path("net.pte.passes").iterdir())]
    assert names[0] == "00_decompose.txt"
    assert "01_scalar_operands.txt" in names
    assert "torch.ops.aten.add.Scalar" in Path("net.pte.passes/01_scalar_operands.txt").read_text()
    assert "aten.linear.default" in capsys.readouterr().out


def test_stages_say_what_each_pass_changed_and_why_not(model, capsys):
    etx(f"{model}:Twice", "-o", "net.pte", "--stages", "--partitioner", "toy:ToyPartitioner")
    assert "why it stayed out" not in capsys.readouterr().out
    log = json.loads(Path("net.pte.stages.json").read_text())
    data = Path("net.pte").read_bytes()
    assert log["file"] == {"bytes": len(data), "crc32": zlib.crc32(data)}
    stages = {stage["name"]: stage for stage in log["methods"]["forward"]["stages"]}
    (added,) = stages["scalar_operands"]["added"]
    assert added[0] == "aten.add.Scalar"
    assert added[2].startswith("model_of_test.py:")
    assert added[4]  # debug handles
    assert stages["scalar_operands"]["equation"].startswith("``mul.Tensor(x, 3)``")
    assert [row[0] for row in stages["delegate"]["added"]] == ["delegate ToyBackend"]
    for stage in stages.values():
        before, after = stage["operators"]
        gone, new = (sum(row[3] for row in stage[word]) for word in ("removed", "added"))
        assert after - before == new - gone
        assert stage["changed"] or not (gone or new)
    assert any("neither" in str(row["reasons"]) for row in log["methods"]["forward"]["outside"])


def test_stages_of_several_methods(model):
    etx(f"{model}:methods", "-o", "net.pte", "--stages", "log.json")
    methods = json.loads(Path("log.json").read_text())["methods"]
    assert len(methods) == 2
    lists = [[stage["name"] for stage in entry["stages"]] for entry in methods.values()]
    assert lists[0] == lists[1]


QUANTIZED = """
import torch
from quantized_programs import Quantized, Weight

def net():
    inputs = torch.ones(2, 10)
    return Quantized(torch.nn.functional.linear, Weight(4, 10, axis=1)), (inputs,)

def plain():
    return Quantized(torch.nn.functional.linear, Weight(4, 10)), (torch.ones(2, 10),)
"""


def test_what_integer_operators_are_made_of_and_why_not(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quantized_of_test.py").write_text(QUANTIZED)
    etx("quantized_of_test.py:net", "-o", "net.pte", "--explain")
    assert "the weight has a scale for each input, not for each output" in capsys.readouterr().out
    etx("quantized_of_test.py:plain", "-o", "net.pte", "--dump-passes")
    assert "does not run on ExecuTorch 1.5.1" in capsys.readouterr().out
    (written,) = Path("net.pte.passes").glob("*_fuse_quantized.txt")
    assert "torch.ops.etx.quantized_linear.default" in written.read_text()


def test_reasons_of_the_partitioner(model, capsys):
    etx(f"{model}:Net", "-o", "net.pte", "--explain", "--partitioner", "toy:ToyPartitioner")
    out = capsys.readouterr().out
    assert "Operators outside: 3" in out
    assert re.search(r"operator +module +source +partitioner +why it stayed out", out)
    relu = r"aten.relu.default +model_of_test.py:\d+ +ToyPartitioner +aten.relu.default is neither"
    assert re.search(relu, out)


class Entry:
    name, value, dist = "toy", "toy:ToyPartitioner", None

    def load(self):
        def partitioner(specs):
            if specs and specs[0].key != "scale":
                raise ValueError(f"unknown spec {specs[0].key}; known: scale")
            return ToyPartitioner()

        return partitioner


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(
        "etx_exir.delegation.backend_entry_points.contributions", lambda group: [Entry()]
    )


ADD = """
import torch

class Add(torch.nn.Module):
    example_inputs = (torch.ones(2), torch.ones(2))

    def forward(self, x, y):
        return (x + y).sin()
"""


def test_an_installed_backend_by_name(model, installed, capsys):
    Path("model_of_test.py").write_text(ADD)
    arguments = (f"{model}:Add", "-o", "net.pte", "--backend", "toy:scale=2", "--explain", "--json")
    etx(*arguments)
    document = json.loads(capsys.readouterr().out)
    assert document["bytes"] == Path("net.pte").stat().st_size
    forward = document["methods"]["forward"]
    assert forward["delegates_by_backend"] == {"ToyBackend": 1}
    (row,) = forward["outside"]
    assert (row["operator"], row["source"]) == ("aten.sin.default", "model_of_test.py:8")
    assert row["reasons"] == {
        "ToyPartitioner": "aten.sin.default is neither an addition nor a product"
    }


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("other", r"no backend 'other' is installed \(installed: toy\)"),
        ("toy:scale", "'scale' is not a spec; expected spec=value"),
        ("toy:size=2", "'toy' .* cannot be used: ValueError: unknown spec size; known: scale"),
    ],
)
def test_a_backend_that_cannot_be_used(model, installed, backend, message):
    with pytest.raises(EtxError, match=message):
        etx(f"{model}:Net", "-o", "net.pte", "--backend", backend)


def test_the_installed_backends_are_listed(installed, capsys):
    parser = argparse.ArgumentParser()
    register_backends(parser.add_subparsers())
    options = parser.parse_args(["backends", "--json"])
    assert options.run(options) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"name": "toy", "package": "", "partitioner": "toy:ToyPartitioner"}
    options = parser.parse_args(["backends"])
    assert options.run(options) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["toy", "toy:ToyPartitioner"]


ERRORS = {
    "model_of_test.py:Missing": "has no function or class 'Missing'; it has Net, dynamic",
    "model_of_test.py": ": expected a factory as model.py:name",
    "nowhere.py:Net": "cannot read nowhere.py: no such file",
    "model_of_test.py:bare": "ReLU without example inputs; return",
    "model_of_test.py:broken": "raised ValueError: no weights",
    "model_of_test.py:number": "returned int; expected a torch.nn.Module",
    "model_of_test.py:Branching": "use torch.cond",
    "model_of_test.py:Factored": "linalg_qr",
}


@pytest.mark.parametrize("source", ERRORS)
def test_errors_are_one_message_and_write_nothing(model, source):
    with pytest.raises(EtxError) as caught:
        etx(source, "-o", "net.pte")
    assert ERRORS[source] in str(caught.value)
    assert not list(Path().glob("*.pte*"))


def test_unsupported_operators_are_reported_at_once_with_their_lines(model):
    with pytest.raises(EtxError) as caught:
        etx(f"{model}:Factored", "-o", "net.pte")
    text = str(caught.value)
    line = SOURCE.splitlines().index("        q, r = torch.linalg.qr(x)") + 1
    assert f"{model}:{line}" in text
    assert f"{model}:{line + 1}" in text


def test_a_directory_as_output(model):
    with pytest.raises(EtxError, match="it is a directory"):
        etx(f"{model}:Net", "-o", ".")
    with pytest.raises(EtxError, match="there is no folder nowhere"):
        etx(f"{model}:Net", "-o", "nowhere/net.pte")


@pytest.mark.xfail(not Path("/dev/full").exists(), reason="needs /dev/full", strict=True)
def test_a_full_disk(model):
    with pytest.raises(EtxError, match=r"(?i)no space left"):
        etx(f"{model}:Net", "-o", "/dev/full")


def test_an_existing_file_survives_an_error(model):
    Path("net.pte").write_bytes(b"before")
    with pytest.raises(EtxError):
        etx(f"{model}:Factored", "-o", "net.pte")
    assert Path("net.pte").read_bytes() == b"before"
    assert torch.is_grad_enabled()


def test_memory_reports(model, capsys):
    for name in ("plan.svg", "plan.txt", "plan.json"):
        assert etx(f"{model}:Net", "-o", "net.pte", "--memory-report", name) == 0
        assert Path(name).stat().st_size > 0
    picture = Path("plan.svg").read_text()
    assert "net.pte: planned memory" in picture
    assert "linear" in picture
    text = Path("plan.txt").read_text()
    assert "gap                0.0 %" in text
    assert "linear  float32[2, 4]  # layer, " in text
    capsys.readouterr()
    assert etx(f"{model}:Net", "-o", "net.pte", "--memory-report", "-") == 0
    assert capsys.readouterr().out.endswith(text)


def test_a_memory_report_that_cannot_be_written(model):
    with pytest.raises(EtxError, match=r"must end in \.svg, \.txt or \.json"):
        etx(f"{model}:Net", "-o", "net.pte", "--memory-report", "plan.png")
    assert not Path("net.pte").exists()


def test_memories_of_a_device(model):
    options = ("-o", "net.pte", "--memory", "sram:32,dram", "--memory-report", "plan.txt")
    assert etx(f"{model}:Net", *options) == 0
    text = Path("plan.txt").read_text()
    assert "memory 1 (sram)\n  peak               32 bytes of 32" in text
    assert "memory 2 (dram)" in text


def test_a_memory_map(model):
    Path("board.json").write_text(
        '{"banks": [{"name": "SRAM", "size": 32, "mem_id": 1},'
        ' {"name": "DRAM", "size": null, "mem_id": 2}], "pins": [{"bank": "DRAM", "op": "input"}]}'
    )
    options = ("-o", "net.pte", "--memory-map", "board.json", "--memory-report", "plan.txt")
    with pytest.raises(EtxError, match="no planned tensor of any method matches"):
        etx(f"{model}:Net", *options)
    Path("board.json").write_text(Path("board.json").read_text().replace('"op"', '"kind"'))
    assert etx(f"{model}:Net", *options) == 0
    text = Path("plan.txt").read_text()
    assert "memory 1 (SRAM)\n  peak               32 bytes of 32" in text
    assert "memory 2 (DRAM)" in text
