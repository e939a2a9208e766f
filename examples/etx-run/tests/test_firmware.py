# SPDX-License-Identifier: BSD-3-Clause
"""`etx firmware` makes a project that builds, runs on each processor, as the host does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from etx_exir import to_edge
from etx_quant import quantize
from machines import BUILDS, HERE

PACKAGES = HERE.parents[1] / "packages"
sys.path.insert(0, str(PACKAGES / "etx-backend-arm" / "tests"))
import tiny  # noqa: E402

MOST_INTEGER_TEXT = {"cortex-m55": 42_000, "cortex-m0plus": 53_000}
MOST_TEXT = {"cortex-m55": 80_000, "cortex-m4": 80_000, "cortex-m0plus": 96_000}
ETX = Path(sys.executable).with_name("etx")


def etx(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(ETX), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def kws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keyword network in int8."""
    network = tiny.make("kws")
    program = torch.export.export(quantize(network.model, network.inputs), network.inputs[0])
    path = tmp_path_factory.mktemp("kws") / "kws.pte"
    to_edge(program).to_executorch().save(path)
    return path


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.mark.parametrize("name", MOST_TEXT)
def test_kws_runs_on_the_board_as_on_the_host(kws: Path, name: str) -> None:
    build_and_run(kws, name, BUILDS / f"firmware-{name}", MOST_TEXT[name])


@pytest.mark.parametrize("name", MOST_INTEGER_TEXT)
def test_executorch_s_kws_runs_on_the_board(name: str) -> None:
    data = PACKAGES / "etx-backend-arm" / "tests" / "data"
    folder = BUILDS / f"firmware-executorch-{name}"
    build_and_run(data / "kws_executorch.pte", name, folder, MOST_INTEGER_TEXT[name])


def build_and_run(model: Path, name: str, folder: Path, most_text: int) -> None:
    shutil.rmtree(folder / "firmware", ignore_errors=True)
    sources = ("--sources", PACKAGES, "--tolerance", "0")
    done = etx("firmware", model, "--target", name, "-o", folder / "firmware", *sources)
    assert done.returncode == 0, done.stderr
    planned = int(re.findall(r"method arena +([\d,]+) bytes", done.stdout)[0].replace(",", ""))
    launcher = shutil.which("ccache")
    options = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []
    build = folder / "build"
    run("cmake", "-S", folder / "firmware", "-B", build, "-G", "Ninja", *options)
    run("cmake", "--build", build, "-j2")
    printed = run("ctest", "--test-dir", build, "-V")
    assert "PASSED" in printed
    assert len(re.findall(r"output 0\[\d+\] = \S+ as expected: \S+", printed)) == 12
    assert int(re.findall(r"method arena: (\d+) bytes", printed)[0]) == planned
    sizes = run("arm-none-eabi-size", "-A", build / "firmware.elf")
    text = int(re.findall(r"^\.text +(\d+)", sizes, re.M)[0])
    assert text <= most_text, f"{text} bytes"


def test_a_board_that_is_too_small_is_named(kws: Path, tmp_path: Path) -> None:
    done = etx("firmware", kws, "--target", "cortex-m4", "-o", tmp_path / "f", "--temp", 1 << 22)
    assert done.returncode != 0
    assert "bytes of RAM and mps2-an386 has 4,194,304" in done.stderr
    assert "planned arena 1" in done.stderr
    assert list(tmp_path.iterdir()) == []
