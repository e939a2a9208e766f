# SPDX-License-Identifier: BSD-3-Clause
"""`etx compare` between ExecuTorch's runtime and each other place that a model runs in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PREPARE = """\
import sys
sys.path.insert(0, sys.argv[1])
import etx_runtime, torch
from etrecord import sample
from etx_exir import ExecutorchBackendConfig, compile
from etx_schema import read_pte, write_pte

module, inputs = sample()
config = ExecutorchBackendConfig(target="executorch")
compile(module, inputs, path="net.pte", config=config)
torch.export.save(torch.export.export(module, inputs), "net.pt2")
recorder = etx_runtime.Recorder("all")
method = etx_runtime.Runtime.get().load_program("net.pte").load_method("forward")
method.trace([x.numpy() for x in inputs], recorder)
recorder.save("device.etdp", "device.bin")
pte = read_pte("net.pte")
for operator in pte.program.execution_plan[0].operators:
    if operator.name == "aten::relu":
        operator.name = "aten::neg"
write_pte(pte, "wrong.pte")
"""
RUN = """\
import contextlib, io, json, sys
from etx_schema.cli import main

found = []
for words in json.loads(sys.argv[1]):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = main(["compare", *words, "--json"])
    found.append((code, json.loads(text.getvalue())))
print(json.dumps(found))
"""
PAIRS = {
    "eager": "--eager net.py:net --executorch",
    "exported": "--against net.pt2 --executorch",
    "here": "--against net.pte --eager net.py:net --executorch",
    "from here": "--eager net.py:net --against-executorch",
    "dump": "--against net.pte --eager net.py:net --against-etdump device.etdp --executorch",
    "from dump": "--eager net.py:net --etdump device.etdp --against-executorch",
    "both": "--against net.pte --eager net.py:net --executorch {python} --against-executorch",
}


@pytest.fixture(scope="module")
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], tuple[int, Any]]:
    """Return exit code and document of each chosen comparison, and of one with another file."""
    specs = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = {s.params["pair"]: None for s in specs if s and "pair" in s.params}
    cases = [*(("net.pte", pair) for pair in chosen), ("wrong.pte", "here")]
    folder = tmp_path_factory.mktemp("places")
    both, theirs = (request.config.getoption(name) for name in ("--both", "--executorch"))
    (folder / "net.py").write_text("from etrecord import sample as net\n")
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    kept["PYTHONPATH"] = str(HERE)

    def run(script: str, argument: str) -> str:
        command = [both, "-W", "ignore", "-c", script, argument]
        done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(PREPARE, str(HERE))
    words = [[f, *PAIRS[pair].format(python=theirs).split(), theirs] for f, pair in cases]
    documents = json.loads(run(RUN, json.dumps(words)).splitlines()[-1])
    return dict(zip(cases, documents, strict=True))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_same_program(found: Any, pair: str) -> None:
    code, document = found["net.pte", pair]
    assert code == 0
    assert document["first"] is None
    (call,) = document["calls"]
    assert len(call["checks"]) >= 4
    assert sum("made" in check for check in call["checks"]) >= 4
    if pair == "eager":
        assert document["ran"] == "ExecuTorch"
        assert all("made" in check for check in call["checks"])
    assert call["outputs"][0]["max_abs"] < 1e-5


def test_another_operator(found: Any) -> None:
    code, document = found["wrong.pte", "here"]
    assert code == 1
    assert document["first"]["operator"] == "aten::neg.out"
