# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from etx_runtime import InputError, Runtime, commands
from etx_runtime.measure import format_bytes, format_time, summarise
from programs import Builder, addition, counter


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
    assert "max 10," in run(capsys, "run", model, "--input", str(tmp_path / "both.npz"))


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
    assert "shape [4, 1]" in run(capsys, "run", str(path), "--shape", "min")
    assert "shape [4, 5]" in run(capsys, "run", str(path), "--shape", "max")
    with pytest.raises(InputError, match=r"'x'.*must be at most 5"):
        run(capsys, "run", str(path), "--shape", "2,6")


def test_bench(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.loads(run(capsys, "bench", model, "--iterations", "5", "--operators", "--json"))
    assert row["min_ms"] <= row["median_ms"] <= row["p90_ms"] <= row["p99_ms"]
    assert row["load_ms"] > 0
    assert row["arena_bytes"]["planned"] > 0
    assert list(row["operators_ms"]) == ["aten::add.out"]
    assert "median" in run(capsys, "bench", model, "--iterations", "2")


def test_percentiles_are_by_nearest_rank() -> None:
    row = summarise([float(n) for n in range(100, 0, -1)])
    assert row == {
        "min_ms": 1.0,
        "median_ms": 50.0,
        "p90_ms": 90.0,
        "p99_ms": 99.0,
        "mean_ms": 50.5,
    }
    assert set(summarise([3.0]).values()) == {3.0}


def test_units() -> None:
    times = [format_time(ms) for ms in (1234.5, 12.345, 0.0125, 0.0000025)]
    assert times == ["1.23 s", "12.3 ms", "12.5 us", "2.5 ns"]
    assert [format_bytes(n) for n in (7, 1234, 5e6, 2.5e9)] == ["7 B", "1.23 kB", "5 MB", "2.5 GB"]


def test_compare(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.pte"
    other.write_bytes(Path(model).read_bytes())
    arguments = ["bench", model, str(other), "--iterations", "3", "--operators"]
    first, second = json.loads(run(capsys, *arguments, "--json"))
    assert "times_faster" not in first
    assert second["times_faster"] == first["median_ms"] / second["median_ms"]
    assert second["largest_difference"] == 0.0
    text = run(capsys, *arguments)
    assert "times as fast; outputs differ by 0" in text
    assert text.splitlines()[-1].endswith("aten::add.out")


def test_calls_in_a_row_share_the_state(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "counter.pte"
    path.write_bytes(counter())
    for step in range(3):
        np.save(tmp_path / f"{step}.npy", np.full(1, 10.0**step, np.float32))
    files = [word for step in range(3) for word in ("--input", str(tmp_path / f"{step}.npy"))]
    folder = ["--output-dir", str(tmp_path / "out"), "--format", "bin"]
    document = json.loads(run(capsys, "run", str(path), *files, *folder, "--json"))
    assert [call[0]["max"] for call in document["calls"]] == [6.0, 16.0, 116.0]
    assert document["statistics"]["calls"] == 3
    written = np.fromfile(tmp_path / "out" / "call_2_output_0.bin", np.float32)
    np.testing.assert_array_equal(written, [116.0])
    text = run(capsys, "run", str(path), *files[:2], "--iterations", "4")
    assert "max 9," in text
    assert "4 calls: mean" in text
    npz = ["--output-dir", str(tmp_path / "z"), "--format", "npz"]
    run(capsys, "run", str(path), *files[:2], *npz)
    with np.load(tmp_path / "z" / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["output_0"], [6.0])


def test_wrong_files(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"none\.npy"):
        run(capsys, "run", model, "--input", str(tmp_path / "none.npy"))
    np.save(tmp_path / "x.npy", np.zeros(1))
    with pytest.raises(InputError, match="takes 2 arrays a call, 1 were given"):
        run(capsys, "run", model, "--input", str(tmp_path / "x.npy"))
    (tmp_path / "x.bin").write_bytes(b"123")
    files = ["--input", str(tmp_path / "x.bin")] * 2
    with pytest.raises(InputError, match=r"has 3 bytes, float32\[2, 3\] 24"):
        run(capsys, "run", model, *files)
