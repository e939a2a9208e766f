# SPDX-License-Identifier: BSD-3-Clause
"""The commands of all packages on a full standard output, and on files with odd names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from etx_schema import cli
from programs import RELU_SOURCE

COMMANDS = {
    "run": ["run", "net.pte"],
    "run json": ["run", "net.pte", "--json"],
    "bench": ["bench", "net.pte", "--iterations", "1"],
    "backends": ["backends"],
    "compile": ["compile", "net.py:Net", "-o", "again.pte"],
}
NAMES = {
    "not UTF-8": os.fsdecode(b"bad\xff"),
    "spaces": " a b ",
    "new line": "a\nb",
    "colon": "a:b",
    "percent": "100%s",
    "dots": "a.b.c",
    "a module of Python": "json",
    "other script": "модель",
    "longest": "a" * 243,
}


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(RELU_SOURCE)
    assert cli.main(["compile", "net.py:Net", "-o", "net.pte"]) == 0


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    """Run commands in processes of their own: to import torch takes longer than they do."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("nursery.py"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        yield process
        process.stdin.close()


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_full_output(
    name: str, unbuffered: bool, net: None, tmp_path: Path, nursery: subprocess.Popen[str]
) -> None:
    errors = tmp_path / "errors"
    words = [COMMANDS[name], str(tmp_path), "/dev/full", str(errors), unbuffered]
    print(json.dumps(words), file=nursery.stdin, flush=True)
    assert nursery.stdout is not None
    code = nursery.stdout.readline().strip()
    told = b"etx: standard output cannot be written: No space left on device\n"
    assert (code, errors.read_bytes()) == ("2", told)


def test_full_output_of_a_new_process(net: None) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "etx_schema.cli", *COMMANDS["run"]],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    assert done.stderr == b"etx: standard output cannot be written: No space left on device\n"
    assert done.returncode == 2


def test_a_model_that_prints_on_closed_output(net: None) -> None:
    source = RELU_SOURCE.replace("return x", "print('traced')\n        return x")
    Path("net.py").write_text(source)
    command = [sys.executable, "-m", "etx_schema.cli", *COMMANDS["compile"]]
    done = subprocess.run(["bash", "-c", '"$@" >&-', "bash", *command], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("kind", NAMES)
def test_odd_names_of_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = NAMES[kind]
    # torch cannot trace code whose file has no UTF-8 name.
    source = "plain" if kind == "not UTF-8" else name
    with open(f"{source}.py", "w") as file:
        file.write(RELU_SOURCE)
    modules, path = dict(sys.modules), list(sys.path)
    report = ["--memory-report", f"{name}.txt", "--dump-passes", f"{name}.passes"]
    try:
        assert cli.main(["compile", f"./{source}.py:Net", "-o", f"{name}.pte", *report]) == 0
    finally:
        sys.path[:] = path
        sys.modules.update(modules)
    for ending in ("pte", "txt", "passes"):
        assert os.path.exists(f"{name}.{ending}")
    assert cli.main(["run", f"{name}.pte", "--output-dir", f"{name}.out"]) == 0
    assert cli.main(["check", f"{name}.pte", "--target", "etx"]) == 0
    assert "Traceback" not in capsys.readouterr().err
