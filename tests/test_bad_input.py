# SPDX-License-Identifier: BSD-3-Clause
"""Bad input is one clear error: what was given, what is wrong, and nothing is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Environment, environment

NURSERY = ROOT / "packages" / "etx-exir" / "tests" / "commands" / "nursery.py"
Compiling = Callable[..., subprocess.CompletedProcess[str]]

MODELS = """
import torch


class Fine(torch.nn.Module):
    def forward(self, x):
        return x + 1


class Branches(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


class Unsupported(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x)


class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256, 256))

    def forward(self, x):
        return x @ self.weight


def fine():
    return Fine(), (torch.ones(2),)


def branches():
    return Branches(), (torch.ones(2),)


def unsupported():
    return Unsupported(), (torch.ones(3, 3),)


def large():
    return Large(), (torch.ones(1, 256),)
"""
CALL = """
import sys
import etx_runtime
import numpy as np
model = etx_runtime.load(sys.argv[1])
try:
    model(*eval(sys.argv[2]))
except etx_runtime.InputError as error:
    print(error)
"""
FULL_DISK = ("bash", "-c", 'ulimit -f 16; export PYTHONDONTWRITEBYTECODE=1; exec "$0" "$@"')
NEWER = """
#include <etx/abi.h>
static const etx_plugin plugin = {sizeof(etx_plugin), MAJOR, MINOR, "etx-toy", "1.0", 0, 0, 0, 0};
__attribute__((visibility("default"))) const etx_plugin* etx_plugin_v1(void) { return &plugin; }
"""


@pytest.fixture(scope="module")
def host() -> Environment:
    """Return a build host: only the compiler."""
    return environment("edge-etx-exir", "etx-exir")


@pytest.fixture(scope="module")
def compiling(host: Environment) -> Iterator[Compiling]:
    """Return what runs `etx compile` there, in processes that begin with torch imported."""
    with subprocess.Popen(
        [host.bin / "python", "-I", "-W", "ignore", NURSERY],
        env=host.variables(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as nursery:

        def compiled(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
            command = ["compile", *map(str, words)]
            out, err = folder / "stdout", folder / "stderr"
            out.touch()
            assert nursery.stdin is not None
            assert nursery.stdout is not None
            order = [command, str(folder), str(out), str(err), False]
            print(json.dumps(order), file=nursery.stdin, flush=True)
            code = int(nursery.stdout.readline())
            return subprocess.CompletedProcess(command, code, out.read_text(), err.read_text())

        yield compiled


@pytest.fixture
def models(tmp_path: Path) -> Path:
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    return path


def fails(environment: Environment, *command: object, **options: object) -> str:
    """Run a command that must fail and return its message: short, and no traceback."""
    return message(environment.run(*command, **options))  # type: ignore[arg-type]


def message(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command that failed says: short, and no traceback."""
    printed = done.stdout + done.stderr
    assert done.returncode not in (0, -11, -6), printed
    assert "Traceback" not in printed
    assert len(done.stderr.strip().splitlines()) <= 12, printed
    return done.stderr


@pytest.mark.parametrize("command", ["run", "show", "check"])
def test_missing_file(device: Environment, command: str, tmp_path: Path) -> None:
    said = fails(device, "etx", command, tmp_path / "absent.pte")
    assert "absent.pte" in said


@pytest.mark.parametrize("command", ["run", "show", "check"])
def test_directory_as_input(device: Environment, command: str, tmp_path: Path) -> None:
    said = fails(device, "etx", command, tmp_path)
    assert "directory" in said


@pytest.mark.parametrize("command", ["run", "show", "check"])
@pytest.mark.parametrize("size", [0, 7, 40, 300])
def test_truncated_file(
    device: Environment, command: str, size: int, add_pte: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.pte"
    cut.write_bytes(add_pte.read_bytes()[:size])
    assert "cut.pte" in fails(device, "etx", command, cut)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("np.zeros(9, np.float32), np.zeros(9, np.float32)", ["9", "8"]),
        ("np.zeros((2, 2), np.float32), np.zeros(4, np.float32)", ["2"]),
        ("np.zeros(4, np.float64), np.zeros(4, np.float32)", ["float64", "float32"]),
        ("np.zeros(4, np.float32),", ["2", "1"]),
        ("'text', np.zeros(4, np.float32)", ["str"]),
    ],
    ids=["shape", "rank", "dtype", "count", "type"],
)
def test_wrong_inputs(device: Environment, add_pte: Path, arguments: str, said: list[str]) -> None:
    printed = device.python("-c", CALL, add_pte, f"({arguments})")
    for part in said:
        assert part in printed, printed


@pytest.mark.parametrize(("major", "minor"), [(1, 99), (2, 0)])
def test_plugin_of_another_abi(
    device: Environment, add_pte: Path, major: int, minor: int, tmp_path: Path
) -> None:
    include = Path(
        device.python("-c", "import etx_runtime; print(etx_runtime.__path__[0])").strip(), "include"
    )
    source, library = tmp_path / "toy.c", tmp_path / "toy.so"
    source.write_text(NEWER.replace("MAJOR", str(major)).replace("MINOR", str(minor)))
    flags = ("-shared", "-fPIC", f"-I{include}", "-o", str(library), str(source))
    compiled = device.run(
        "python", "-c", f"import subprocess; subprocess.check_call(['cc', *{flags}])"
    )
    assert compiled.returncode == 0, compiled.stderr
    said = fails(device, "etx", "run", add_pte, ETX_PLUGIN_PATHS=str(library))
    assert f"{major}.{minor}" in said
    assert "upgrade" in said or "update" in said


def test_module_that_cannot_be_exported(compiling: Compiling, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    said = message(compiling(tmp_path, f"{models}:branches", "-o", out))
    assert "cannot be exported" in said
    assert "models.py:12" in said
    assert not out.exists()


def test_unsupported_operator(compiling: Compiling, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    said = message(compiling(tmp_path, f"{models}:unsupported", "-o", out))
    assert "linalg_svd" in said
    assert "models.py" in said
    assert not out.exists()


def test_directory_as_output(compiling: Compiling, models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out.pte"
    folder.mkdir()
    assert "directory" in message(compiling(tmp_path, f"{models}:fine", "-o", folder))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("factory", ["models.py:absent", "absent.py:fine", "models.py"])
def test_factory_that_is_not_there(
    compiling: Compiling, models: Path, factory: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.pte"
    said = message(compiling(tmp_path, factory, "-o", out))
    assert "absent" in said or ":" in said
    assert not out.exists()


def test_full_disk_keeps_what_was_there(host: Environment, models: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "m.pte"
    out.parent.mkdir()
    out.write_bytes(b"precious")
    command = ("etx", "compile", f"{models}:large", "-o", out)
    assert "m.pte" in fails(host, *command, prefix=FULL_DISK)
    assert out.read_bytes() == b"precious"
    assert list(out.parent.iterdir()) == [out]
