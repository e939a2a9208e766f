# SPDX-License-Identifier: BSD-3-Clause
"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer.

Runs once more what the other tests called, each tensor in a block of its own, then what the
runtime's fuzzer makes of these programs in seconds, and them at sizes near 2^31 and 2^33. By hand,
for minutes, and all of them ten times: ETX_FUZZ_SECONDS=600 ETX_ENLARGED=10.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import sys
from pathlib import Path

import pytest
from building import call, tool
from harness import PLUGIN, RECORDER
from record import Recorder

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent
RUNTIME_TESTS = PACKAGE.parent / "etx-runtime" / "tests"
SECONDS = int(os.environ.get("ETX_FUZZ_SECONDS", "10"))
TOOLS = ("fuzz_execute", "broken_files", "enlarged", "outputs", "every_level", "every_integer")
LEVELS = ("base", "v3", "v3_vnni", "v4_vnni", "v4_amx")
"""Of x86-64; one that a processor does not run is the next one below. The last runs on a model of
tiles, as these programs are built."""
CPU = Path("/proc/cpuinfo")
FEATURES = CPU.read_text().split() if CPU.exists() else []
VNNI = "avx512_vnni" in FEATURES
NEEDS = {"v4": {"avx512dq", "avx512vl"}, "amx": {"avx512_bf16"}}
"""What a processor must have for a level of floats to run."""
PART = 1500
EVERY = 1021  # of 2^32 floats
DIGEST = "76856ae8e534f026"
"""Of what the integer loops write, on any processor."""
LIMITS = ["-rss_limit_mb=2048", "-timeout=10", "-max_len=16384", "-seed=1"]


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What executes programs with the kernels: a fuzzer where there is Clang, and broken files."""
    build = tmp_path_factory.mktemp("sanitized")
    options = [f"-DETX_FUZZ_KERNELS={PACKAGE}", "-DCMAKE_BUILD_TYPE=None"]
    options += ["-DCMAKE_CXX_FLAGS=-Og -g1", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    options += [f"-DPython_EXECUTABLE={sys.executable}"]
    options.append("-DCMAKE_UNITY_BUILD=ON")  # of the runtime
    if clang := shutil.which("clang++"):
        options.append(f"-DCMAKE_CXX_COMPILER={clang}")
    call(tool("cmake"), "-S", RUNTIME_TESTS / "fuzz", "-B", build, "-G", "Ninja", *options)
    call(tool("cmake"), "--build", build, "-j2", "--target", *TOOLS)
    return build


def write(recorder: Recorder, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, program in recorder.programs.items():
        (folder / f"{name}.pte").write_bytes(program)


@pytest.mark.parametrize("options", [(), ("-DETX_SIMD_SCALAR",)], ids=["vectors", "scalar"])
def test_elementary_functions_at_every_float(options: tuple[str, ...], tmp_path: Path) -> None:
    """Within the errors that vector_math.h states, and without undefined behaviour, NaNs too."""
    built = tmp_path / "every_float"
    options += ("-std=c++17", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    call("c++", *options, f"-I{PACKAGE / 'native'}", TESTS / "cpp" / "every_float.cpp", "-o", built)
    call(built, EVERY)


def test_no_elements_are_read_from_nowhere(tmp_path: Path) -> None:
    """Empty tensors may have no memory."""
    built, native = tmp_path / "no_elements", PACKAGE / "native"
    options = ("-std=c++17", "-Og", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    headers = (f"-I{native}", f"-I{RUNTIME_TESTS.parent / 'include'}")
    names = ("core/cast.cpp", "isa/isa.cpp", "isa/isa_level.cpp")
    sources = (TESTS / "cpp" / "no_elements.cpp", *(native / name for name in names))
    call("c++", *options, *headers, *sources, "-o", built)
    call(built)


@pytest.mark.parametrize("level", ["v4", "amx"])
def test_every_loop_at_every_level(sanitized: Path, level: str) -> None:
    command = ("env", f"ETX_KERNELS_ISA={level}", sanitized / "every_level")
    base, *levels = call(*command).split()
    assert base == "base"
    if NEEDS[level] <= set(FEATURES):
        assert level in levels


@pytest.mark.parametrize("level", [*LEVELS[2:], "v4"])
def test_integer_loops_give_the_same_at_every_level(sanitized: Path, level: str) -> None:
    """Bits of floats too: each level rounds what the others round."""
    command = ("env", f"ETX_KERNELS_ISA={level}", sanitized / "every_integer")
    base, digest, *levels = call(*command).split()
    assert (base, digest) == ("base", DIGEST)
    assert len(levels) == len(set(levels))
    if level in ("v4_vnni", "v4_amx") and VNNI:
        assert level in levels


def test_every_call_again(sanitized: Path, tmp_path: Path) -> None:
    called = {name.rpartition("-")[0].replace(".", "::", 1) for name in RECORDER.programs}
    assert called >= PLUGIN.called - {"executorch_prim::et_view.default", "etx::view_at.default"}
    seeds, corpus = tmp_path / "calls", tmp_path / "corpus"
    write(RECORDER, seeds)
    corpus.mkdir()
    limits = [*LIMITS, f"-max_total_time={SECONDS}", f"-artifact_prefix={corpus}/"]
    command = sanitized / "fuzz_execute", *limits, "-print_final_stats=1", corpus, seeds
    text = call(*command, both=True)
    runs = re.search(r"(?:Done |executed_units: )(\d+)", text)
    assert runs is not None, text
    assert int(runs.group(1)) > len(RECORDER.programs)


def test_integer_calls_return_the_same_at_every_level(sanitized: Path, tmp_path: Path) -> None:
    write(RECORDER, tmp_path / "calls")
    files = sorted(
        path for kind in ("quantized", "dynamic") for path in tmp_path.glob(f"calls/etx.{kind}_*")
    )
    returned = {
        call("env", f"ETX_KERNELS_ISA={level}", sanitized / "outputs", *files) for level in LEVELS
    }
    assert len(returned) == 1
    assert int(returned.pop().split()[0]) > 150


def test_every_call_enlarged(
    sanitized: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Sizes up to 2^31 - 1, tensors of gigabytes, numbers at the ends of int64: refused, or right
    as far as a run gets; in no case outside of a tensor or of int64."""
    seed = request.config.getoption("sweep_seed")
    write(RECORDER, tmp_path / "calls")
    files = sorted((tmp_path / "calls").iterdir())
    rounds = os.environ.get("ETX_ENLARGED")
    if rounds is None:
        files = random.Random(seed).sample(files, min(PART, len(files)))
    last = tmp_path / "last.pte"
    text = call(sanitized / "enlarged", seed, rounds or 1, last, *files, both=True)
    loaded, right, refused, left = map(int, re.findall(r"\d+", text))
    assert min(loaded, right, refused, left) > len(files) // 50, text


def test_every_field_of_files_of_executorch(sanitized: Path) -> None:
    """Cut at every 64 bytes, and each field wrong in turn, with the kernels they call."""
    files = sorted((RUNTIME_TESTS / "executorch").iterdir())
    count, cuts, fields = map(int, re.findall(r"\d+", call(sanitized / "broken_files", *files)))
    assert (count, cuts > 150, fields > 10_000) == (len(files), True, True)
