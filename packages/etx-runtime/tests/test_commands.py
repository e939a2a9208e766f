# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import argparse
import json
from pathlib import Path

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import InputError, LoadError, MetadataError, Runtime, RuntimeFailure
from etx_runtime.commands.expected import compare_tensor
from etx_runtime.commands.measure import format_bytes, format_time, summarise
from etx_runtime.commands.register import register_bench, register_run
from etx_schema import encode
from etx_schema._generated.bundled_program import BundledProgram
from etx_schema._generated.etdump import ETDump
from etx_schema.errors import FileError
from programs import Builder, addition, counter


def commands_of(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    register_run(subparsers)
    register_bench(subparsers)
    return parser.parse_args(arguments)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    options = commands_of(*arguments)
    assert int(options.run(options) or 0) == code
    return capsys.readouterr().out


@pytest.fixture
def model(runtime: Runtime, tmp_path: Path) -> str:
    path = tmp_path / "add.pte"
    path.write_bytes(addition())
    return str(path)


@pytest.mark.parametrize("form", ["npy", "npz", "bin"])
def test_files_are_whole_or_as_before(
    model: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before a file has its name."""
    name = "outputs.npz" if form == "npz" else f"output_0.{form}"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(b"before")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    options = commands_of("run", model, "--output-dir", str(tmp_path / "out"), "--format", form)
    with pytest.raises(KeyboardInterrupt):
        options.run(options)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]
    assert (tmp_path / "out" / name).read_bytes() == b"before"


def test_recording(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], runtime: Runtime
) -> None:
    path = tmp_path / "a.etdp"
    run(capsys, "run", model, "--etdump", str(path), "--iterations", "3", "--values", "outputs")
    dump = es.decode_size_prefixed(ETDump, path.read_bytes(), "ED00")
    assert [each.name for each in dump.run_data] == ["Default", *["Execute"] * 3]
    assert len(path.with_suffix(".bin").read_bytes()) == 3 * 64
    run(capsys, "run", model, "--etdump", str(path), "--values", "stats,0-0")
    seen = es.decode_size_prefixed(ETDump, path.read_bytes(), "ED00").run_data[-1].events
    assert [e.debug_event.debug_entry.tensor.offset for e in seen if e.debug_event] == [-1, -1]
    for text, message in (
        ("all,stats", "give one of none, outputs, all, stats"),
        ("outputs,0", "outputs are not those of instructions"),
        ("0-9", "expected instructions from 0 to 0, the first not after"),
        ("layers", "or a module with instructions .the file names no modules"),
    ):
        with pytest.raises(InputError, match=f"--values {text}: .*{message}"):
            run(capsys, "run", model, "--etdump", str(path), "--values", text)
    for words in (["--values", "all"], ["--etdump-threads"]):
        with pytest.raises(InputError, match="--etdump-threads record with --etdump, which is not"):
            run(capsys, "run", model, *words)
    words = ["--etdump", str(path), "--etdump-threads"]
    with pytest.raises(InputError, match="times only, got --values all beside it"):
        run(capsys, "run", model, *words, "--values", "all")
    run(capsys, "run", model, *words)
    assert path.read_bytes()[8:12] == b"ED00"


def test_state_that_cannot_be_written(tmp_path: Path, runtime: Runtime) -> None:
    (tmp_path / "c.pte").write_bytes(counter())
    absent = tmp_path / "absent" / "s.npz"
    with pytest.raises(FileError, match=r"cannot write .*absent/s\.npz: there is no folder"):
        commands_of("run", str(tmp_path / "c.pte"), "--save-state", str(absent))


@pytest.mark.parametrize("command", ["run", "bench"])
def test_number_of_threads(model: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(capsys, command, model, "--threads", "1025")
    assert "expected at most 1024 threads, got 1025" in capsys.readouterr().err
    text = run(capsys, command, model, "--threads", "3", "--json")
    assert '"threads": 3' in text
    etx_runtime.set_num_threads(0)


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
    def lines(seed: str) -> str:
        return run(capsys, "run", model, "--random", "--seed", seed).splitlines()[0]

    assert lines("3") == lines("3") != lines("4")
    assert lines("3").startswith("output 0: dtype float32, shape [2, 3]")


def test_shapes(runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    b = Builder()
    b.output(b.input(b.tensor((4, 6), dynamic=True)))
    b.constraints(["x"], [[None, {"symbol": "s", "min": 1, "max": 5, "divisor": 1}]])
    path = tmp_path / "dynamic.pte"
    path.write_bytes(b.serialize())
    assert "shape [4, 5]" in run(capsys, "run", str(path))
    assert "shape [4, 3]" in run(capsys, "run", str(path), "--shape", "4,3")
    assert "shape [4, 1]" in run(capsys, "run", str(path), "--shape", "min")
    assert "shape [4, 5]" in run(capsys, "run", str(path), "--shape", "max")
    with pytest.raises(InputError, match=r"'x'.*must be at most 5"):
        run(capsys, "run", str(path), "--shape", "4,6")
    with pytest.raises(InputError, match=r"'x'.*dimension 0 is 2, but must be 4"):
        run(capsys, "run", str(path), "--shape", "2,3")


def test_bench(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.loads(run(capsys, "bench", model, "--iterations", "5", "--operators", "--json"))
    assert row["min_ms"] <= row["median_ms"] <= row["p90_ms"] <= row["p99_ms"]
    assert row["load_ms"] > 0
    assert row["arena_bytes"]["planned"] > 0
    assert [(line["name"], line["calls"]) for line in row["operators"]] == [("aten::add.out", 1)]
    assert (row["iterations"], row["inputs"]) == (5, [[2, 3], [2, 3]])
    assert "median" in run(capsys, "bench", model, "--iterations", "2")


def test_percentiles_are_by_nearest_rank() -> None:
    row = summarise([float(n) for n in range(100, 0, -1)])
    assert row == {
        "min_ms": 1.0,
        "median_ms": 50.0,
        "p90_ms": 90.0,
        "p99_ms": 99.0,
        "max_ms": 100.0,
        "mean_ms": 50.5,
        "std_ms": pytest.approx(28.866, abs=1e-3),
    }
    assert set(summarise([3.0]).values()) == {3.0, 0.0}


def test_units() -> None:
    times = [format_time(ms) for ms in (1234.5, 12.345, 0.0125, 0.0000025)]
    assert times == ["1.23 s", "12.3 ms", "12.5 us", "2.5 ns"]
    assert format_time(999.9) == "1000 ms"
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
    assert "times as fast as [0]; their outputs differ by 0" in text
    operators = [line.split() for line in text.splitlines()[-3:]]
    assert operators[0] == [
        "operator",
        "[0]",
        "calls",
        "time",
        "share",
        "[1]",
        "calls",
        "time",
        "share",
    ]
    assert operators[1][:2] == ["aten::add.out", "1"]
    assert len({len(line) for line in text.splitlines()[4:8]}) == 1


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
    assert "4 calls: first" in text
    npz = ["--output-dir", str(tmp_path / "z"), "--format", "npz"]
    run(capsys, "run", str(path), *files[:2], *npz)
    with np.load(tmp_path / "z" / "outputs.npz") as outputs:
        np.testing.assert_array_equal(outputs["output_0"], [6.0])


def test_wrong_files(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"none\.npy"):
        run(capsys, "run", model, "--input", str(tmp_path / "none.npy"))
    np.save(tmp_path / "x.npy", np.zeros(1))
    with pytest.raises(
        InputError, match=r"expected 2 arrays a call \(float32\[2, 3\], .*\), 1 were given"
    ):
        run(capsys, "run", model, "--input", str(tmp_path / "x.npy"))
    (tmp_path / "x.bin").write_bytes(b"123")
    files = ["--input", str(tmp_path / "x.bin")] * 2
    with pytest.raises(InputError, match=r"has 3 bytes, float32\[2, 3\] 24"):
        run(capsys, "run", model, *files)


def dynamic(runtime: Runtime, tmp_path: Path) -> str:
    """x[s, 2 * s] and a number n <= 4, passed through."""
    b = Builder()
    b.output(b.input(b.tensor((6, 12), dynamic=True)))
    n, twice = b.input(b.int(3)), b.int(0)
    b.call("executorch_prim::add.Scalar", n, n, twice)
    b.output(twice)
    row = [
        {"symbol": "s", "min": 2, "max": 6, "divisor": 2},
        {"symbol": "s", "expr": "2*s", "min": 2, "max": 8, "divisor": 1},
    ]
    rows = [{"name": "x", "dims": row}]
    rows.append({"name": "n", "dims": [], "value": {"symbol": "n", "min": 1, "max": 4}})
    b.named["etx/constraints"] = es.NamedBlob(json.dumps({"forward": {"inputs": rows}}).encode())
    path = tmp_path / "symbols.pte"
    path.write_bytes(b.serialize())
    return str(path)


def test_symbols(runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dynamic(runtime, tmp_path)
    for options, shape in (
        ([], [4, 8]),
        (["--shape", "min"], [2, 4]),
        (["--dim", "s=2"], [2, 4]),
        (["--shape", "x=4,8"], [4, 8]),
    ):
        assert f"shape {shape}" in run(capsys, "run", path, *options)
    (tmp_path / "x.bin").write_bytes(bytes(2 * 4 * 4))
    text = run(capsys, "run", path, "--input", f"x={tmp_path / 'x.bin'}", "--dim", "s=2")
    assert "shape [2, 4], min 0, max 0" in text
    assert "value 4" in run(capsys, "run", path, "--dim", "n=2")
    assert "value 2" in run(capsys, "run", path, "--input", "n=1")
    with pytest.raises(
        InputError, match=r"unknown dimension 't'; the method has: n .1 to 4., s .2 "
    ):
        run(capsys, "run", path, "--dim", "t=2")
    with pytest.raises(InputError, match="s is 3, but must be 2 to 4, a multiple of 2"):
        run(capsys, "run", path, "--dim", "s=3")
    with pytest.raises(InputError, match="no input 'z'; its inputs: x, n"):
        run(capsys, "run", path, "--input", "z=1")
    with pytest.raises(InputError, match=r"'n'.*is a number, or a file"):
        run(capsys, "run", path, "--input", "n=one")
    with pytest.raises(InputError, match=r"has 32 bytes, float32\[4, 8\] 128; --shape or --dim"):
        run(capsys, "run", path, "--input", str(tmp_path / "x.bin"))


def test_inputs_by_name(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = Builder()
    x, y = b.input(b.tensor((2,))), b.input(b.tensor((2,)))
    b.output(x, y)
    b.constraints(["x", "y"], [[None], [None]])
    path = tmp_path / "names.pte"
    path.write_bytes(b.serialize())
    one, two = np.ones(2, np.float32), np.full(2, 2, np.float32)
    np.savez(tmp_path / "xy.npz", y=two, x=one)
    text = run(capsys, "run", str(path), "--input", str(tmp_path / "xy.npz"))
    assert "values [1, 1]" in text.splitlines()[0]
    np.save(tmp_path / "y.npy", two)
    text = run(capsys, "run", str(path), "--input", f"y={tmp_path / 'y.npy'}")
    assert "values [2, 2]" in text.splitlines()[1]
    assert "values [1, 1]" not in text


def test_state_in_files(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "counter.pte"
    path.write_bytes(counter())
    np.save(tmp_path / "one.npy", np.ones(1, np.float32))
    command = ["run", str(path), "--input", str(tmp_path / "one.npy")]
    state = str(tmp_path / "state.npz")
    assert "max 6," in run(capsys, *command, "--save-state", state)
    both = ["--load-state", state, "--save-state", state]
    assert "max 7," in run(capsys, *command, *both)
    assert "max 8," in run(capsys, *command, *both)
    assert list(tmp_path.glob(".state*")) == []
    with np.load(state) as content:
        assert content.files == ["count"]
        assert content["count"].tolist() == [8.0]
    for given, message in (
        ({"count": np.ones(2, np.float32)}, r"'count': expected float32\[1\], got float32\[2\]"),
        ({"count": np.ones(1)}, r"'count': expected float32\[1\], got float64\[1\]"),
        ({"other": np.ones(1)}, r"no buffer 'other' \(it has: count\)"),
    ):
        np.savez(tmp_path / "wrong.npz", **given)
        with pytest.raises(RuntimeFailure, match=rf"wrong\.npz: .*{message}"):
            run(capsys, *command, "--load-state", str(tmp_path / "wrong.npz"))
    (tmp_path / "broken.npz").write_bytes(Path(state).read_bytes()[:-30])
    with pytest.raises(InputError, match=r"broken\.npz cannot be read"):
        run(capsys, *command, "--load-state", str(tmp_path / "broken.npz"))
    (tmp_path / "one.npz").write_bytes((tmp_path / "one.npy").read_bytes())
    with pytest.raises(RuntimeFailure, match=r"one\.npz: .*no buffer ''"):
        run(capsys, *command, "--load-state", str(tmp_path / "one.npz"))
    with pytest.raises(FileError, match="cannot write"):
        run(capsys, *command, "--save-state", str(tmp_path / "none" / "state.npz"))
    with pytest.raises(InputError, match=r"expected a \.npz file"):
        run(capsys, *command, "--save-state", str(tmp_path / "state.bin"))


def test_state_of_a_program_without(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MetadataError, match="forward has no buffers with names"):
        run(capsys, "run", model, "--save-state", "s.npz")


def test_expected(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    command = ["run", model, "--input", str(tmp_path / "x.npy"), "--input", str(tmp_path / "x.npy")]
    np.save(tmp_path / "right.npy", x * 2)
    text = run(capsys, *command, "--expect", str(tmp_path / "right.npy"))
    assert "output 0 is as expected: largest difference 0" in text
    wrong = x * 2
    wrong[1, 2] += 0.5
    np.save(tmp_path / "wrong.npy", wrong)
    text = run(capsys, *command, "--expect", str(tmp_path / "wrong.npy"), code=1)
    assert "1 of 6 elements differ, most at [1, 2]: 10, expected 10.5" in text
    run(capsys, *command, "--expect", str(tmp_path / "wrong.npy"), "--rtol", "0.05")
    (tmp_path / "right.bin").write_bytes((x * 2).tobytes())
    document = run(capsys, *command, "--expect", str(tmp_path / "right.bin"), "--json")
    assert json.loads(document)["compared"][0][0]["matches"]
    np.save(tmp_path / "shape.npy", wrong.T)
    text = run(capsys, *command, "--expect", str(tmp_path / "shape.npy"), code=1)
    assert "has shape [2, 3], expected [3, 2]" in text
    with pytest.raises(InputError, match=r"--expect .*: expected arrays of 1 call, the last, got"):
        run(capsys, *command, *["--expect", str(tmp_path / "right.npy")] * 2)
    wrong[0, 0] = np.nan
    np.save(tmp_path / "nan.npy", wrong)
    text = run(capsys, *command, "--expect", str(tmp_path / "nan.npy"), "--atol", "1", code=1)
    assert "1 of 6 elements differ, most at [0, 0]: 0, expected nan" in text


def test_types_that_numpy_lacks(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = Builder()
    b.output(b.input(b.tensor((2,), es.ScalarType.BFLOAT16)))
    path = tmp_path / "bf16.pte"
    path.write_bytes(b.serialize())
    folder = ["--output-dir", str(tmp_path / "out")]
    assert "dtype bfloat16, shape [2], min" in run(capsys, "run", str(path), *folder)
    written = np.load(tmp_path / "out" / "output_0.npy")
    assert (written.dtype, written.shape) == (np.uint16, (2,))
    one = np.array([0x3F80, 0xC000], np.uint16)
    np.save(tmp_path / "x.npy", one)
    (tmp_path / "x.bin").write_bytes(one.tobytes())
    for name in ("x.npy", "x.bin"):
        expected = ["--expect", str(tmp_path / name)]
        text = run(capsys, "run", str(path), "--input", str(tmp_path / name), *expected)
        assert "values [1, -2]" in text
    assert "differ by 0" in run(capsys, "bench", str(path), str(path), "--iterations", "1")


@pytest.mark.parametrize(
    "content", [b"", b"x", b"PK\x03\x04", b"\x93NUMPY\x01\x00\xff", b"\x93NUMPY"]
)
def test_broken_arrays(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npy cannot be read as a \.npy or \.npz"):
        run(capsys, "run", model, "--input", str(path))


def test_bundled_programs_run(
    model: str, runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = Path(model).read_bytes()
    path = tmp_path / "x.bpte"
    path.write_bytes(encode(BundledProgram(version=2, program=content), "BP08"))
    assert run(capsys, "run", str(path)) != ""
    assert "differ by 0" in run(capsys, "bench", str(path), model, "--iterations", "1")
    assert runtime.load_program(path.read_bytes()).method_names == {"forward"}
    with path.open("rb") as file:
        assert runtime.load_program(file).method_names == {"forward"}
    assert "forward" in runtime.load_program(path, mmap=False).method_names
    whole = path.read_bytes()
    for size in range(8, len(whole) - len(content), 4):
        path.write_bytes(whole[:size])
        with pytest.raises(LoadError, match=r"x\.bpte: a damaged bundled program: byte \d+"):
            run(capsys, "run", str(path))


def test_infinities_are_equal_only_to_themselves() -> None:
    infinite = np.array([np.inf, 1.0], np.float32)
    assert compare_tensor(infinite, "float32", infinite.copy(), 1e-5, 1e-5)["matches"]
    for other in (-np.inf, 1e30, np.nan):
        wrong = np.array([other, 1.0], np.float32)
        assert not compare_tensor(wrong, "float32", infinite, 1e-5, 1e-5)["matches"]
        assert not compare_tensor(infinite, "float32", wrong, 1e-5, 1e-5)["matches"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--iterations", "0"], "expected a whole number from 1, got '0'"),
        (["--shape", "2,x"], "expected sizes such as 1,3,224, got '2,x'"),
        (["--dim", "s"], "expected SYMBOL=N, got 's'"),
        (["--atol", "nan"], "expected a number from 0, got 'nan'"),
    ],
)
def test_wrong_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        commands_of("run", "model.pte", *words)
    assert message in capsys.readouterr().err


def test_bench_fills_the_time(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.loads(run(capsys, "bench", model, "--seconds", "0.05", "--json"))
    assert row["iterations"] >= 10
    assert row["std_ms"] >= 0
    assert row["max_ms"] >= row["p99_ms"]
