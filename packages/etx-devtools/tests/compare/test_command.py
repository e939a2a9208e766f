# SPDX-License-Identifier: BSD-3-Clause
"""`etx compare`: text, JSON and exit codes."""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import sys

import etx_runtime
import jsonschema
import numpy as np
import pytest
import torch
from compared_models import rows
from etx_devtools.compare.command import register
from etx_devtools.documents import schema
from etx_exir import ExecutorchBackendConfig
from etx_exir import compile as compile_model
from etx_schema import EtxError, cli, read_pte, write_pte

SOURCE = """
import sys
sys.path.insert(0, {folder!r})
from compared_models import rows

def net():
    return rows()["convolutions"][:2]
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("written")
    (folder / "net.py").write_text(SOURCE.format(folder=str(request.path.parent)))
    module, inputs, _ = rows()["convolutions"]
    compile_model(module, inputs, path=folder / "net.pte")
    pte = read_pte(folder / "net.pte")
    for operator in pte.program.execution_plan[0].operators:
        if operator.name == "aten::sigmoid":
            operator.name = "aten::tanh"
    write_pte(pte, folder / "wrong.pte")
    return folder


@pytest.fixture
def files(written, tmp_path, monkeypatch):
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def etx(capsys, *words):
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    options = parser.parse_args(["compare", *words])
    return options.run(options), capsys.readouterr().out


def test_a_right_file(files, capsys):
    code, text = etx(capsys, "net.pte", "--eager", "net.py:net")
    assert code == 0
    assert text.startswith("no instruction of net.pte makes an error: ")
    assert "random" not in text


def test_a_wrong_file(files, capsys):
    code, text = etx(capsys, "wrong.pte", "--eager", "net.py:net")
    assert code == 1
    assert "is the first that makes an error: aten::tanh.out" in text.splitlines()[0]
    assert "the model's sigmoid" in text


def test_json_and_the_bound(files, capsys):
    words = ("wrong.pte", "--eager", "net.py:net", "--json", "--fail-over")
    code, text = etx(capsys, *words, "100")
    assert code == 0
    document = json.loads(text)
    assert document["first"]["operator"] == "aten::tanh.out"
    assert document["first"]["made"]["max_abs"] > document["first"]["allowed"]
    assert etx(capsys, *words, "1e-6")[0] == 1


@pytest.mark.parametrize("words", [("--random", "-1"), ("--fail-over", "nan")], ids=str)
def test_what_is_no_number(capsys, words):
    with pytest.raises(SystemExit):
        etx(capsys, "net.pte", "--eager", "net.py:net", *words)
    assert f"got '{words[1]}'" in capsys.readouterr().err


QUANTIZED = """
import numpy as np
import torch


def net():
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4)
    return torch.nn.Sequential(*layers).eval(), (torch.randn(1, 3, 8, 8),)


def two():
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(4, 4).eval(), torch.ones(1, 4)
    return {"last": (layer, (x,)), "forward": (torch.nn.Sequential(layer, torch.nn.Tanh()), (x,))}
"""


@pytest.fixture
def quantized(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quantized_net.py").write_text(QUANTIZED)
    np.savez("images.npz", input=np.random.default_rng(0).standard_normal((4, 3, 8, 8), np.float32))
    return "quantized_net.py:net", "--quantize", "int8", "--calibrate", "images.npz"


def test_a_file_that_the_compiler_quantized(quantized, capsys):
    assert cli.main(["compile", *quantized, "-o", "int8.pte"]) == 0
    capsys.readouterr()
    code, text = etx(capsys, "int8.pte", "--eager", *quantized, "--json")
    assert code == 0
    (call,) = json.loads(text)["calls"]
    assert {layer["module"] for layer in call["layers"]} >= {"1", "3"}
    assert all(float(x["runtime"]) > 50 > float(x["design"]) > 20 for x in call["layers"])
    with pytest.raises(EtxError, match="with the same dynamic shapes and --quantize"):
        etx(capsys, "int8.pte", "--eager", quantized[0])
    with pytest.raises(EtxError, match="--calibrate goes with --quantize RECIPE"):
        etx(capsys, "int8.pte", "--eager", quantized[0], *quantized[3:])
    assert cli.main(["report", "int8.pte", "--eager", *quantized, "-o", "r.html"]) == 0


def test_all_methods(quantized, capsys):
    model = quantized[0].replace(":net", ":two")
    assert cli.main(["compile", model, "-o", "two.pte"]) == 0
    capsys.readouterr()
    code, text = etx(capsys, "two.pte", "--eager", model)
    assert (code, "\nlast: 1 results" in text, "\nforward: 2 results" in text) == (0, True, True)
    pte = read_pte("two.pte")
    for plan in pte.program.execution_plan:
        for operator in plan.operators:
            operator.name = operator.name.replace("aten::tanh", "aten::sigmoid")
    write_pte(pte, "wrong.pte")
    code, text = etx(capsys, "wrong.pte", "--eager", model)
    first = "instruction 1 is the first that makes an error (method forward): aten::sigmoid.out"
    assert (code, text.splitlines()[0]) == (1, first)
    assert etx(capsys, "wrong.pte", "--eager", model, "--method", "last")[0] == 0
    np.save("x.npy", np.ones((1, 4), np.float32))
    code, text = etx(capsys, "two.pte", "--eager", model, "--inputs", "x.npy")
    assert text.endswith("note: not compared: last; --method names another method\n")


METRIC = """
def energy(got, expected):
    return ((got - expected) ** 2).sum() / (expected**2).sum()


def ones(got, expected):
    return 1
"""


def test_metrics_of_ones_own(files, capsys, tmp_path):
    (tmp_path / "metric.py").write_text(METRIC)
    words = ("wrong.pte", "--eager", "net.py:net", "--metric", "metric.py:energy")
    text = etx(capsys, *words, "--metric", "metric.py:ones")[1]
    assert ", ones 1" in text
    document = json.loads(etx(capsys, *words, "--json")[1])
    jsonschema.validate(document, schema("compare"))
    made = document["first"]["made"]
    assert made["own"]["energy"] == pytest.approx(10 ** (-made["snr_db"] / 10), rel=1e-4)
    assert (
        json.loads(etx(capsys, *words[:3], "--json")[1])["first"]["made"]
        .keys()
        .isdisjoint({"own", "problem"})
    )
    (tmp_path / "metric.py").write_text("def energy(got):\n    return got\n")
    with pytest.raises(EtxError, match="the metric energy: TypeError: "):
        etx(capsys, *words)
    with pytest.raises(EtxError, match="has no function or class 'other'"):
        etx(capsys, *words[:3], "--metric", "metric.py:other")


def test_inputs_from_a_file(files, capsys):
    np.savez("real.npz", **{str(i): np.ones((1, 3, 8, 8), np.float32) * i for i in range(3)})
    words = ("net.pte", "--eager", "net.py:net", "--json")
    _, text = etx(capsys, *words, "--inputs", "real.npz")
    document = json.loads(text)
    assert len(document["calls"]) == 3
    assert not document["random_inputs_only"]
    _, text = etx(capsys, *words, "--random", "1")
    assert json.loads(text)["random_inputs_only"]


def test_the_first_wrong_instruction_is_a_program(files, capsys):
    code, text = etx(capsys, "wrong.pte", "--eager", "net.py:net", "--reduce", "small.pte")
    assert code == 1
    assert "written: small.pte, its inputs small.npz" in text
    assert len(read_pte("small.pte").program.execution_plan[0].chains[0].instructions) == 1
    given, expected = (list(np.load(name).values()) for name in ("small.npz", "small.expected.npz"))
    (got,) = etx_runtime.Runtime.get().load_program("small.pte").load_method("forward")(given)
    np.testing.assert_allclose(got, np.tanh(given[0]), rtol=1e-5)
    np.testing.assert_allclose(expected[0], 1 / (1 + np.exp(-given[0])), rtol=1e-5)
    with pytest.raises(EtxError, match="no instruction is wrong"):
        etx(capsys, "net.pte", "--eager", "net.py:net", "--reduce", "small.pte")


def test_no_such_model(files, capsys):
    with pytest.raises(EtxError, match="has no function or class 'nut'"):
        etx(capsys, "net.pte", "--eager", "net.py:nut")


def record(name, values, factor=1):
    method = etx_runtime.Runtime.get().load_program(name).load_method("forward")
    recorder = etx_runtime.Recorder(values)
    method.trace([factor * x.numpy() for x in rows()["convolutions"][1]], recorder)
    recorder.save("device.etdp", "device.bin")


def test_what_a_device_recorded(files, capsys):
    words = ("net.pte", "--eager", "net.py:net", "--etdump", "device.etdp")
    with pytest.raises(EtxError, match="no such file"):
        etx(capsys, *words)
    record("net.pte", "all")
    code, text = etx(capsys, *words)
    assert code == 0
    assert "the values are those of device.etdp" in text
    record("wrong.pte", "all")
    code, text = etx(capsys, *words)
    assert code == 1
    assert "makes an error: aten::sigmoid.out" in text.splitlines()[0]
    assert "the kernel computes something else" in text
    assert "other inputs" not in text
    record("net.pte", "all", factor=2)
    code, text = etx(capsys, *words)
    assert code == 1
    assert "instruction 0 is the first that makes an error" in text
    assert "else than torch's operator, or the recorded call had other inputs than these" in text
    np.savez("two.npz", **{str(i): np.ones((1, 3, 8, 8), np.float32) for i in range(2)})
    with pytest.raises(EtxError, match="inputs of more calls"):
        etx(capsys, *words, "--inputs", "two.npz")
    record("net.pte", "outputs")
    with pytest.raises(EtxError, match="no values of instructions"):
        etx(capsys, *words)


def test_an_interpreter_without_executorch(files, capsys):
    words = ("net.pte", "--eager", "net.py:net", "--executorch")
    with pytest.raises(EtxError, match="No module named 'executorch'"):
        etx(capsys, *words, sys.executable)
    with pytest.raises(EtxError, match="not a Python interpreter"):
        etx(capsys, *words, "nowhere")


PAIRS = {
    "program, eager": "net.pte --eager net.py:net",
    "program, exported": "net.pte --against net.pt2",
    "program, program": "net.pte --against other.pte --eager net.py:net",
    "program, dump": "net.pte --against-etdump device.etdp --eager net.py:net",
    "other program, dump": "other.pte --against net.pte --against-etdump device.etdp"
    " --eager net.py:net",
    "dump, eager": "net.pte --etdump device.etdp --eager net.py:net",
    "dump, exported": "net.pte --etdump device.etdp --against net.pt2",
    "dump, dump": "net.pte --etdump device.etdp --against-etdump device.etdp --eager net.py:net",
    "exported, eager": "net.pt2 --eager net.py:net",
    "exported, exported": "net.pt2 --against net.pt2",
}
OTHER = {
    "program, eager": "wrong.pte --eager net.py:net",
    "program, exported": "wrong.pte --against net.pt2",
    "program, program": "wrong.pte --against net.pte --eager net.py:net",
    "program, dump": "wrong.pte --against-etdump device.etdp --eager net.py:net",
    "dump, eager": "wrong.pte --etdump device.etdp --eager net.py:net --json",
    "exported, eager": "changed.pt2 --eager net.py:net",
    "exported, exported": "changed.pt2 --against net.pt2",
}


@pytest.fixture(scope="module")
def recorded(written):
    module, inputs, _ = rows()["convolutions"]
    changed = copy.deepcopy(module)
    torch.nn.init.zeros_(changed.depthwise.bias)
    config = ExecutorchBackendConfig(target="executorch")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(written)
        torch.export.save(torch.export.export(module, inputs), "net.pt2")
        torch.export.save(torch.export.export(changed, inputs), "changed.pt2")
        compile_model(module, inputs, path="other.pte", config=config)
        record("net.pte", "all")


@pytest.fixture
def places(recorded, files):
    """Files, and what else one compares."""


@pytest.mark.parametrize("pair", PAIRS)
def test_two_places_that_agree(places, capsys, pair):
    code, text = etx(capsys, *PAIRS[pair].split())
    assert code == 0, text
    count = int(text.partition(" makes an error: ")[2].split()[0])
    assert count >= 4, text
    assert "max abs" in text


@pytest.mark.parametrize("pair", OTHER)
def test_two_places_that_differ(places, capsys, pair):
    assert etx(capsys, *PAIRS[pair].split())[0] == 0
    record("wrong.pte" if pair.startswith("dump") else "net.pte", "all")
    code, text = etx(capsys, *OTHER[pair].split())
    assert code == 1, text
