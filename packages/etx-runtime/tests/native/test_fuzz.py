# SPDX-License-Identifier: BSD-3-Clause
"""Broken files: an error or the program's work, never a crash, a hang, a leak, or memory by the GB.

The targets of tests/fuzz run under sanitizers for half a minute. By hand, for as long as one likes:

    cmake -S tests/fuzz -B build -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS=-O1 \\
        -DETX_FUZZ_KERNELS=../etx-kernels-portable
    cmake --build build && python tests/seeds.py seeds
    build/fuzz_execute -rss_limit_mb=2048 -runs=10000000 corpus seeds/pte
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import etx_schema as es
import pytest
import seeds
from building import UNITED, call, configure, tool
from conftest import HERE
from programs import Builder

EXECUTORCH = HERE / "executorch"
TARGETS = {"program": 5, "execute": 15, "named_data": 5, "ptd": 3, "c_api": 5}
LIMITS = ["-rss_limit_mb=2048", "-timeout=10", "-max_len=16384", "-print_final_stats=1", "-seed=1"]

CHILD = """
import random, sys
import numpy as np
import etx_runtime
from pathlib import Path

runtime = etx_runtime.Runtime.get()
runtime.load_plugin(sys.argv[1])
etx_runtime.set_num_threads(1)
def attempt(data):
    try:
        program = runtime.load_program(data)
        for name in program.method_names:
            method = program.load_method(name)
            method.set_instruction_budget(1000)
            meta = method.metadata
            inputs = []
            for i in range(meta.num_inputs()):
                if meta.input_tag(i) == 1:
                    info = meta.input_tensor_meta(i)
                    if info.nbytes() > 1 << 20:
                        return "big"
                    inputs.append(np.ones(info.sizes(), info.dtype_name()))
                else:
                    inputs.append(method.input_value(i))
            for _ in range(2):
                method.execute(inputs)
        return "ran"
    except (etx_runtime.RuntimeFailure, TypeError, UnicodeDecodeError) as error:
        return "refused"

counts = {}
generator = random.Random(int(sys.argv[2]))
for path in sys.argv[4:]:
    seed = Path(path).read_bytes()
    for end in range(0, len(seed), 64):
        assert attempt(seed[:end]) == "refused", end
    for _ in range(int(sys.argv[3])):
        data = bytearray(seed)
        for _ in range(generator.choice((1, 1, 1, 2, 4))):
            at = generator.randrange(len(data))
            flipped = data[at] ^ 1 << generator.randrange(8)
            data[at] = generator.choice((0, 1, 2, 127, 128, 255, flipped))
        result = attempt(bytes(data))
        counts[result] = counts.get(result, 0) + 1
print(counts)
assert counts.get("refused", 0) > 0 and counts.get("ran", 0) > 0
"""


def test_mutated_files(plugin: Path, tmp_path: Path) -> None:
    seeds.write(tmp_path)
    paths = [str(path) for path in sorted((tmp_path / "pte").iterdir())]
    rounds = os.environ.get("ETX_FUZZ_ROUNDS", "400")
    command = [sys.executable, "-c", CHILD, str(plugin), "7", rounds, *paths]
    environment = {**os.environ, "ETX_PLUGINS": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.fixture(scope="module")
def fuzzers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The targets, of libFuzzer where there is Clang."""
    build = tmp_path_factory.mktemp("fuzz")
    seeds.write(build / "seeds")
    options = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-Og -g1", UNITED]
    options += [f"-DPython_EXECUTABLE={sys.executable}"]
    if clang := shutil.which("clang++"):
        options.append(f"-DCMAKE_CXX_COMPILER={clang}")
    configure(HERE / "fuzz", build, *options)
    call(tool("cmake"), "--build", build, "-j2")
    return build


@pytest.fixture(autouse=True)
def program_with_weights(fuzzers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs with the weights of each `.ptd`."""
    monkeypatch.setenv("ETX_FUZZ_PROGRAM", str(fuzzers / "seeds" / "pte" / "external.pte"))


@pytest.mark.parametrize("name", TARGETS)
def test_fuzz(fuzzers: Path, name: str) -> None:
    corpus = fuzzers / "corpus" / name
    corpus.mkdir(parents=True)
    kind = "ptd" if name == "ptd" else "pte"
    limits = [*LIMITS, f"-max_total_time={TARGETS[name]}", f"-artifact_prefix={corpus}/"]
    text = call(fuzzers / f"fuzz_{name}", *limits, corpus, fuzzers / "seeds" / kind, both=True)
    runs = re.search(r"(?:Done |executed_units: )(\d+)", text)
    assert runs is not None, text
    assert int(runs.group(1)) > 100


def test_every_field_of_every_seed(fuzzers: Path) -> None:
    """Cut at every 64 bytes, and each field wrong in turn: what fails says what and where.

    The files of ExecuTorch are written by interop/small_files.py.
    """
    files = [*sorted((fuzzers / "seeds").rglob("*.*")), *sorted(EXECUTORCH.iterdir())]
    text = call(fuzzers / "broken_files", *files)
    count, cuts, fields = map(int, re.findall(r"\d+", text))
    assert count == len(files)
    assert cuts >= sum(path.stat().st_size for path in files) // 64
    assert fields > 10_000


def chain(count: int) -> bytes:
    """`count` additions, each with values, lists, inputs and outputs of its own."""
    b = Builder()
    for _ in range(count):
        x = b.input(b.tensor((1,), memory="unbound"))
        out = b.tensor((1,))
        b.value(es.TensorList(items=[x, out]))
        b.add(x, out, out)
        b.output(out)
    return b.serialize()


def test_loading_is_linear_in_counted_steps(fuzzers: Path, tmp_path: Path) -> None:
    counts = (100, 200, 400, 800)
    paths = [tmp_path / f"{count}.pte" for count in counts]
    for path, count in zip(paths, counts, strict=True):
        path.write_bytes(chain(count))
    steps = [int(line) for line in call(fuzzers / "count_steps", *paths).split()]
    grown = [b - a for a, b in itertools.pairwise(steps)]
    assert grown[0] > 10_000
    assert all(b <= 2.3 * a for a, b in itertools.pairwise(grown)), steps


def test_seeds_run(fuzzers: Path, plugin: Path, tmp_path: Path) -> None:
    """A seed that is refused would have the fuzzers begin at the door."""
    import etx_runtime

    runtime = etx_runtime.Runtime.get()
    runtime.load_plugin(plugin)
    for name, make in seeds.PROGRAMS.items():
        if name in {"external", "probe", "inline"}:
            continue
        assert runtime.load_program(make()).load_method("forward") is not None, name
