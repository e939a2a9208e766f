# SPDX-License-Identifier: BSD-3-Clause
"""Changed blobs and files of packed weights are refused with a reason, or used: under sanitizers,
never a crash. `test_fuzz.py FOLDER RUNS SEED`, which `nox -s xnnpack-fuzz` calls, runs as many as
one likes with XNNPACK under the sanitizer as well.
"""

from __future__ import annotations

import re
import sys
import tempfile
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


def build_fuzzers(build: Path, *options: str) -> Path:
    """Build under sanitizers; return the folder of the programs."""
    flags = (f"-DCMAKE_{language}_FLAGS=-O1 -DNDEBUG" for language in ("C", "CXX"))
    static = (
        "-DETX_XNNPACK_STATIC=ON",
        "-DETX_XNNPACK_TESTS=ON",
        "-DCMAKE_BUILD_TYPE=None",
        "-DCMAKE_UNITY_BUILD=ON",
        *flags,
    )
    configure(HERE.parent, build, *static, "-DETX_SANITIZE=address,undefined", *options)
    call("cmake", "--build", build, "--target", "fuzz_blobs", "fuzz_cache")
    return build / "tests" / "cpp"


@pytest.fixture(scope="module")
def fuzzers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fuzzers(tmp_path_factory.mktemp("fuzz"))


def test_changed_blobs(fuzzers: Path, tmp_path: Path) -> None:
    seeds = write_seeds(tmp_path)
    out = call(fuzzers / "fuzz_blobs", RUNS, 1, *seeds)
    print(out)
    refused, blamed, loaded, ran = map(int, re.findall(r"\d+", out.splitlines()[-1]))
    assert f"seeds: 0 refused, {len(seeds)} loaded" in out
    assert refused + loaded == RUNS
    assert min(refused, loaded, ran) > RUNS // 20
    assert blamed >= RUNS // 400


def test_changed_files_of_packed_weights(fuzzers: Path, tmp_path: Path) -> None:
    out = call(fuzzers / "fuzz_cache", RUNS, 1, tmp_path)
    refused, mapped = map(int, re.findall(r"\d+", out))
    assert refused + mapped == RUNS
    assert min(refused, mapped) > RUNS // 20


def main(folder: Path, runs: str, seed: str) -> None:
    """Fuzz with XNNPACK under the sanitizer as well."""
    programs = build_fuzzers(folder / "build", "-DETX_XNNPACK_FLAGS=-fsanitize=address")
    print(call(programs / "fuzz_blobs", runs, seed, *write_seeds(folder / "seeds")), end="")
    with tempfile.TemporaryDirectory() as cache:
        print(call(programs / "fuzz_cache", runs, seed, cache), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
