# SPDX-License-Identifier: BSD-3-Clause
"""`etx firmware` makes a project that builds, runs on each processor, as the host does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from etx_backend_arm.cortex_m import CortexMQuantizer, lower_to_cortex_m
from etx_backend_arm.firmware.build import build_firmware
from etx_backend_arm.firmware.counts import COUNT, Counts, compare, count
from etx_backend_arm.firmware.stack import read_functions
from etx_backend_arm.firmware.targets import target
from etx_exir import ExecutorchBackendConfig, to_edge
from etx_quant import quantize
from machines import BUILDS, HERE
from torch import Tensor, nn
from torch.nn import functional

PACKAGES = HERE.parents[1] / "packages"
DATA = PACKAGES / "etx-backend-arm" / "tests" / "data"
sys.path.insert(0, str(PACKAGES / "etx-backend-arm" / "tests"))
import operator_sweep  # noqa: E402
import tiny  # noqa: E402

MOST_INTEGER_TEXT = {"cortex-m55": 40_000, "cortex-m4": 40_000, "cortex-m0plus": 44_000}
MOST_METHOD_ARENA = 4_096
CLANG = "clang++-14"
COMPILERS = [*((name, "OFF") for name in MOST_INTEGER_TEXT), ("cortex-m55", CLANG)]
"""Each target, and what compiles its vector kernels beside GCC."""
FORBIDDEN = re.compile(
    r"__aeabi_(c?d\w+|drsub|\w+2d)|__\w+df\w*|_?malloc(_r)?|free|_sbrk|v?\w?n?printf"
)
"""Arithmetic of doubles, and what no firmware of an int8 model links."""
BASELINE = Path(__file__).with_name("instructions.json")
MOST_TEXT = {"cortex-m55": 80_000, "cortex-m4": 80_000, "cortex-m0plus": 96_000}
STATED = re.compile(r"^([a-z 0-9]+?) +([\d,]+) bytes", re.M)
USED = re.compile(r"(method arena|temporary memory|stack): (\d+) bytes")
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


@pytest.fixture(scope="module")
def integer_kws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The keyword network as operators of `cortex_m::`."""
    network = tiny.make("kws", 4)
    model = quantize(network.model, network.inputs, CortexMQuantizer())
    path = tmp_path_factory.mktemp("kws") / "kws.pte"
    edge = lower_to_cortex_m(to_edge(torch.export.export(model, network.inputs[0])))
    edge.to_executorch(ExecutorchBackendConfig(target=None)).save(path)
    return path


@pytest.mark.parametrize(("name", "clang"), COMPILERS)
def test_integer_kws_is_small_and_executes_as_many_instructions_as_noted(
    integer_kws: Path, name: str, clang: str
) -> None:
    key = name if clang == "OFF" else f"{name}, {clang}"
    folder = BUILDS / f"firmware-integer-{name}-{clang}"
    stated = dict(STATED.findall(write(integer_kws, name, folder)))
    assert int(stated["method arena"].replace(",", "")) <= MOST_METHOD_ARENA
    given = [f"-DETX_CORTEX_M_CLANG={clang}"]
    counted = count(folder / "firmware", target(name).board, options=given)
    image = folder / "firmware" / COUNT / "firmware.elf"
    assert text_size(image) <= MOST_INTEGER_TEXT[name]
    symbols = run("arm-none-eabi-nm", image).split()
    assert not [symbol for symbol in symbols if FORBIDDEN.fullmatch(symbol)]
    noted = json.loads(BASELINE.read_text())
    rows = tuple((operator, number) for operator, number in noted[key]["operators"])
    moved = compare(Counts(noted[key]["total"], rows), counted, 0.01)
    now = {"total": counted.total, "operators": counted.operators}
    (BUILDS / f"instructions-{name}-{clang}.json").write_text(json.dumps(now, indent=1))
    assert not moved, "\n".join(moved)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A program with many operators, and how many."""
    model = operator_sweep.Sweep()
    program = to_edge(torch.export.export(model, tuple(model.inputs)))
    path = tmp_path_factory.mktemp("sweep") / "sweep.pte"
    program.to_executorch(ExecutorchBackendConfig(target=None)).save(path)
    return path, len(model.calls)


@pytest.mark.parametrize(("name", "clang"), COMPILERS)
def test_each_processor_computes_what_the_host_does(
    sweep: tuple[Path, int], name: str, clang: str
) -> None:
    path, calls = sweep
    folder = BUILDS / f"firmware-sweep-{name}-{clang}"
    write(path, name, folder)
    given = [f"-DETX_CORTEX_M_CLANG={clang}"]
    counted = count(folder / "firmware", target(name).board, options=given)
    assert len(counted.operators) == calls


class Wider(nn.Module):
    """Operators that compute in another dtype than their tensors have."""

    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        return [result for x in given for result in self.results(x)]

    def results(self, x: torch.Tensor) -> list[torch.Tensor]:
        image = x.reshape(1, 1, 8, 8)
        pools = [functional.max_pool2d(image, 2), functional.avg_pool2d(image, 2)]
        norms = [functional.softmax(x, 1), functional.layer_norm(x, (8,)), functional.gelu(x)]
        return [*pools, *norms, x.var(1), x.argmax(1), x.cumsum(0)]


def test_each_operator_of_a_selection_runs_and_is_counted(tmp_path: Path) -> None:
    """Of another library than `cortex_m::`, too, and without what it does at load."""
    x = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    path, folder = tmp_path / "wider.pte", tmp_path / "image"
    to_edge(torch.export.export(Wider(), (x.half(), x))).to_executorch().save(path)
    folder.mkdir()
    write(path, "cortex-m4", folder, "--stack", 1 << 14, "--tolerance", "1e-3")
    counted = count(folder / "firmware", target("cortex-m4").board)
    names = [name for name, _ in counted.operators]
    assert len(names) == 16
    for name in ("avg_pool2d", "cumsum", "argmax"):
        assert names.count(f"aten::{name}.out") == 2
    assert counted.total == sum(number for _, number in counted.operators)


def test_the_stack_s_frames_are_those_of_the_compiler() -> None:
    """Of each function that the compiler names by its symbol, `-fstack-usage`'s bytes or more."""
    folder = BUILDS / "firmware-stack"
    shutil.rmtree(folder, ignore_errors=True)
    write(DATA / "kws_executorch.pte", "cortex-m4", folder, "--stack", "4096")
    flags = "-DCMAKE_CXX_FLAGS_MINSIZEREL=-Os -DNDEBUG -fstack-usage -fcallgraph-info=su"
    launcher = "-DCMAKE_CXX_COMPILER_LAUNCHER="
    build = folder / "firmware" / "build"
    image = build_firmware(folder / "firmware", build, [flags, launcher])
    node = re.compile(r'title: "(?:[^"]*:)?([^":]+)" label: "[^"]*\\n(\d+) bytes \(static\)')
    files = build.rglob("*.ci")
    stated = dict(found for file in files for found in node.findall(file.read_text()))
    frames = {name: f.frame for name, f in read_functions(image).items()}
    common = frames.keys() & stated.keys()
    assert len(common) > 100
    assert not {name for name in common if frames[name] < int(stated[name])}


@pytest.mark.parametrize("name", ["cortex-m55", "cortex-m0plus"])
def test_executorch_s_kws_runs_on_the_board(name: str) -> None:
    folder = BUILDS / f"firmware-executorch-{name}"
    build_and_run(
        DATA / "kws_executorch.pte", name, folder, 40_000 if name == "cortex-m55" else 44_000
    )


def write(model: Path, name: str, folder: Path, *options: object) -> str:
    """Write a firmware into `folder`; return what `etx firmware` prints."""
    shutil.rmtree(folder / "firmware", ignore_errors=True)
    sources = ("--sources", PACKAGES, "--tolerance", "0")
    done = etx("firmware", model, "--target", name, "-o", folder / "firmware", *sources, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def text_size(image: Path) -> int:
    """Return the bytes of code and of constants but the model."""
    return int(re.findall(r"^\.text +(\d+)", run("arm-none-eabi-size", "-A", image), re.M)[0])


def build_and_run(model: Path, name: str, folder: Path, most_text: int) -> None:
    stated = write(model, name, folder)
    planned = {name: int(size.replace(",", "")) for name, size in STATED.findall(stated)}
    build = folder / "firmware" / "build"
    build_firmware(folder / "firmware", build, [])
    printed = run("ctest", "--test-dir", build, "-V")
    assert "PASSED" in printed
    assert len(re.findall(r"output 0\[\d+\] = \S+ as expected: \S+", printed)) == 12
    used = {name: int(size) for name, size in USED.findall(printed)}
    assert used["method arena"] == planned["method arena"]
    assert used["temporary memory"] <= planned["temporary memory"]
    if not re.search("assumed for|measured on", stated):
        assert used["temporary memory"] == planned["temporary memory"]
        assert used["stack"] > planned["stack"] / 2
    assert used["stack"] <= planned["stack"]
    text = text_size(build / "firmware.elf")
    assert text <= most_text, f"{text} bytes"


class Largest(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.topk(x, 40, dim=-1)


def test_a_stack_that_is_too_small_is_named(tmp_path: Path) -> None:
    """A kernel that sorts calls itself: the bound is of as many items as RAM has bytes."""
    x = torch.rand(3, 300, generator=torch.Generator().manual_seed(0))
    path = tmp_path / "largest.pte"
    to_edge(torch.export.export(Largest(), (x,))).to_executorch().save(path)
    stated = write(path, "cortex-m4", tmp_path)
    (size,) = re.findall(r"stack +([\d,]+) bytes  \(upper bound", stated)
    assert int(size.replace(",", "")) < 4096
    assert write(path, "cortex-m4", tmp_path, "--stack", 512)
    folder = tmp_path / "firmware"
    build_firmware(folder, folder / "build", [])
    done = subprocess.run(
        ["ctest", "--test-dir", folder / "build", "-V"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "FAILED: stack full, see --stack" in done.stdout
    counted = etx("count", path, "--target", "cortex-m4", "--sources", PACKAGES)
    assert counted.returncode == 0, counted.stderr


def test_a_board_that_is_too_small_is_named(kws: Path, tmp_path: Path) -> None:
    done = etx("firmware", kws, "--target", "cortex-m4", "-o", tmp_path / "f", "--temp", 1 << 22)
    assert done.returncode != 0
    assert "bytes of RAM and mps2-an386 has 4,194,304" in done.stderr
    assert "planned arena 1" in done.stderr
    assert list(tmp_path.iterdir()) == []
