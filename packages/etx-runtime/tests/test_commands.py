# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from etx_runtime import InputError, Runtime, commands
from programs import Builder, addition


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    parser = argparse.ArgumentParser()
    commands.register(parser.add_subparsers())
    options = parser.parse_args(arguments)
    options.run(options)
    return capsys.readouterr().out


@pytest.fixture
def model(runtime: Runtime, tmp_path: Path) -> str:
    path = tmp_path / "add.pte"
    path.write_bytes(addition())
    return str(path)


def test_run_files(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "y.bin").write_bytes(x.tobytes())
    files = ["--input", str(tmp_path / "x.npy"), "--input", str(tmp_path / "y.bin")]
    text = run(capsys, "run", model, *files, "--output-dir", str(tmp_path / "out"), "--json")
    (row,) = json.loads(text)["outputs"]
    assert (row["dtype"], row["shape"], row["max"]) == ("float32", [2, 3], 10.0)
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "output_0.npy"), x * 2)
    np.savez(tmp_path / "both.npz", x, x)
    assert "max 10.0" in run(capsys, "run", model, "--input", str(tmp_path / "both.npz"))


def test_run_random(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, again = (run(capsys, "run", model, "--random", "--seed", "3") for _ in range(2))
    assert first == again
    assert first.startswith("output 0: dtype float32, shape [2, 3]")
    assert run(capsys, "run", model, "--seed", "4") != first


def test_shapes(runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = Builder()
    b.output(b.input(b.tensor((4, 6), dynamic=True)))
    b.constraints(["x"], [[None, {"symbol": "s", "min": 1, "max": 5, "divisor": 1}]])
    path = tmp_path / "dynamic.pte"
    path.write_bytes(b.serialize())
    assert "shape [4, 5]" in run(capsys, "run", str(path))
    assert "shape [2, 3]" in run(capsys, "run", str(path), "--shape", "2,3")
    with pytest.raises(InputError, match=r"'x'.*must be at most 5"):
        run(capsys, "run", str(path), "--shape", "2,6")


def test_bench(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.loads(run(capsys, "bench", model, "--iterations", "5", "--operators", "--json"))
    assert row["min_ms"] <= row["median_ms"] <= row["p90_ms"]
    assert row["load_ms"] > 0
    assert row["arena_bytes"]["planned"] > 0
    assert list(row["operators_ms"]) == ["aten::add.out"]
    assert "median" in run(capsys, "bench", model, "--iterations", "2")


def test_wrong_files(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"none\.npy"):
        run(capsys, "run", model, "--input", str(tmp_path / "none.npy"))
    np.save(tmp_path / "x.npy", np.zeros(1))
    with pytest.raises(InputError, match="takes 2 arrays, 1 were given"):
        run(capsys, "run", model, "--input", str(tmp_path / "x.npy"))
    (tmp_path / "x.bin").write_bytes(b"123")
    files = ["--input", str(tmp_path / "x.bin")] * 2
    with pytest.raises(InputError, match=r"has 3 bytes, float32\[2, 3\] 24"):
        run(capsys, "run", model, *files)
