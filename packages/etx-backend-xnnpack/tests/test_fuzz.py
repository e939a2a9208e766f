# SPDX-License-Identifier: BSD-3-Clause
"""Changed blobs are refused with a reason, or run: under sanitizers, never a crash.

By hand, for as long as one likes, with XNNPACK under the sanitizer as well:

    cmake -S . -B build -G Ninja -DETX_XNNPACK_STATIC=ON -DETX_XNNPACK_TESTS=ON \\
        -DETX_SANITIZE=address,undefined -DETX_XNNPACK_FLAGS="-fsanitize=address"
    cmake --build build && python tests/test_fuzz.py seeds
    build/tests/cpp/fuzz_blobs 1000000 1 seeds/*
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from building import call, configure
from etx_schema import read_pte
from graphs import GraphBuilder, with_constants
from node_cases import CASES

HERE = Path(__file__).parent
RUNS = 4000


def write_seeds(folder: Path) -> list[Path]:
    """Write a blob of each kind of node and those that ExecuTorch exported, constants inside."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    blobs = {}
    for name, build in CASES.items():
        builder = GraphBuilder()
        build(builder)
        blobs[name] = builder.whole_blob()
    for path in sorted((HERE / "data").glob("*.pte")):
        pte = read_pte(path)
        for i, blob in enumerate(pte.delegates):
            blobs[f"{path.stem}-{i}"] = with_constants(bytes(blob), pte.named_data)
    for name, blob in blobs.items():
        (folder / name).write_bytes(blob)
    return [folder / name for name in blobs]


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("fuzz")
    options = ("-DETX_XNNPACK_STATIC=ON", "-DETX_XNNPACK_TESTS=ON", "-DCMAKE_CXX_FLAGS=-O1")
    configure(HERE.parent, build, *options, "-DETX_SANITIZE=address,undefined")
    call("cmake", "--build", build, "--target", "fuzz_blobs")
    return build / "tests" / "cpp" / "fuzz_blobs"


def test_changed_blobs(fuzzer: Path, tmp_path: Path) -> None:
    seeds = write_seeds(tmp_path)
    out = call(fuzzer, RUNS, 1, *seeds)
    print(out)
    refused, blamed, loaded, ran = map(int, re.findall(r"\d+", out.splitlines()[-1]))
    assert f"seeds: 0 refused, {len(seeds)} loaded" in out
    assert refused + loaded == RUNS
    assert min(refused, loaded, ran) > RUNS // 20
    assert blamed >= RUNS // 400


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
