# SPDX-License-Identifier: BSD-3-Clause
"""The simulator and the delegate under sanitizers: weight streams of Vela's encoder, changed blobs.

By hand, for as long as one likes:

    cmake -S . -B build -G Ninja -DETX_ARM_STATIC=ON -DETX_ARM_TESTS=ON \\
        -DETX_SANITIZE=address,undefined
    cmake --build build && python tests/test_native.py seeds
    build/tests/cpp/fuzz_blobs 1000000 1 seeds/*
    build/tests/cpp/fuzz_delegate 1000000 1 seeds/*
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import test_forms
from ethosu import mlw_codec
from etx_backend_arm.ethos_u.backend import EthosUPartitioner
from etx_backend_arm.ethos_u.blob import write_blob
from etx_backend_arm.ethos_u.compile_spec import EthosUCompileSpec
from etx_backend_arm.ethos_u.vela import compile_graph
from lowered import delegates, lower
from test_simulator import CASES, prepared

PACKAGE = Path(__file__).resolve().parents[1]
SEEDS = ("conv", "depthwise", "avg_pool", "max_pool", "transposed")
FORMS = ("add", "bmm", "minimum", "nearest_twice", "sigmoid", "sum", "unbind")
TWO_CORES = EthosUCompileSpec("ethos-u65-512")
SPEC = EthosUCompileSpec("ethos-u55-128")
RUNS = 8000
CALLS = 3000


def call(*command: object, **options: object) -> bytes:
    done = subprocess.run([str(c) for c in command], capture_output=True, check=False, **options)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:].decode(errors="replace")
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("native")
    beside = str(Path(sys.executable).parent)
    cmake = shutil.which("cmake", path=beside) or shutil.which("cmake")
    ninja = shutil.which("ninja", path=beside) or shutil.which("ninja")
    options = ["-DETX_ARM_STATIC=ON", "-DETX_ARM_TESTS=ON", "-DETX_SANITIZE=address,undefined"]
    options += [f"-DCMAKE_MAKE_PROGRAM={ninja}", "-DCMAKE_CXX_FLAGS=-O1"]
    options += ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_UNITY_BUILD=ON"]
    call(cmake, "-S", PACKAGE, "-B", build, "-G", "Ninja", *options)
    call(cmake, "--build", build, "-j", "2")
    return build / "tests" / "cpp"


def tensors(count: int) -> Iterator[np.ndarray]:
    """Yield weights as they come: spread, few values, sparse, in runs, large, none but zeros."""
    random = np.random.default_rng(0)
    for i in range(count):
        size = int(random.integers(30000, 70000) if i % 100 == 0 else random.integers(1, 1500))
        made = [
            random.integers(-255, 256, size),
            random.normal(0, random.uniform(0.3, 60), size),
            random.choice(random.integers(-255, 256, random.integers(1, 20)), size),
            random.integers(-128, 128, size) * (random.random(size) < random.random()),
            np.repeat(random.integers(-40, 41, size), random.integers(1, 9, size))[:size],
            np.zeros(size) if i % 4 == 1 else random.laplace(0, 4, size),
        ]
        yield np.clip(made[i % len(made)], -255, 255).astype(np.int16)


def test_weight_streams_are_decoded_as_they_were_encoded(programs: Path) -> None:
    stream, weights = b"", []
    for tensor in tensors(600):
        data = bytes(mlw_codec.encode(tensor.tolist()))
        assert mlw_codec.decode(bytearray(data))[: len(tensor)] == tensor.tolist()
        stream += struct.pack("<II", len(data), len(tensor)) + data
        weights.append(tensor)
    decoded = call(programs / "decode_weights", input=stream)
    np.testing.assert_array_equal(np.frombuffer(decoded, np.int16), np.concatenate(weights))


def write_seeds(folder: Path) -> list[Path]:
    """Write the blobs of some operators."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SEEDS:
        partitioner = EthosUPartitioner(SPEC)
        (delegate,) = delegates(lower(*prepared(CASES[name]), partitioner=partitioner))
        (folder / name).write_bytes(delegate.processed_bytes)
    (delegate,) = delegates(
        lower(*prepared(CASES["conv"]), partitioner=EthosUPartitioner(TWO_CORES))
    )
    (folder / "two_cores").write_bytes(delegate.processed_bytes)
    for name in FORMS:
        graph = test_forms.lowered(name, "INT")[2]
        (folder / name).write_bytes(write_blob(compile_graph(graph, SPEC)))
    return [folder / name for name in (*SEEDS, "two_cores", *FORMS)]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_seeds(tmp_path_factory.mktemp("seeds"))


def test_changed_blobs_are_refused_or_run(programs: Path, seeds: list[Path]) -> None:
    out = call(programs / "fuzz_blobs", RUNS, 1, *seeds).decode()
    refused, too_large, stopped, ran = map(int, re.findall(r"\d+", out))
    assert refused + too_large + stopped + ran == RUNS
    assert min(refused, stopped, ran) > RUNS // 50, out


def test_delegates_of_changed_blobs_are_refused_or_called(
    programs: Path, seeds: list[Path]
) -> None:
    out = call(programs / "fuzz_delegate", CALLS, 1, *seeds).decode()
    refused, stopped, cancelled, ran = map(int, re.findall(r"\d+", out))
    assert refused + stopped + cancelled + ran == CALLS
    assert min(refused, stopped, ran) > CALLS // 20, out
    assert cancelled > CALLS // 100, out


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
