# SPDX-License-Identifier: BSD-3-Clause
"""Files that are read rather than mapped may change, shrink or go once they are loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import LoadError, Runtime
from programs import FLOAT, Builder

N = 100_000
X = np.ones(N, np.float32)


def filled(value: float) -> bytes:
    return np.full(N, value, np.float32).tobytes()


def write_files(folder: Path) -> tuple[Path, Path]:
    """A program of many pages: a constant, a buffer with initial values, external weights."""
    b = Builder()
    x = b.input(b.tensor((N,)))
    constant = b.tensor((N,), memory="constant", data=filled(2))
    external = b.tensor((N,), memory="external", name="weight")
    state = b.tensor((N,), data=filled(4), name="state")
    sums = [b.tensor((N,)) for _ in range(3)]
    b.add(x, constant, sums[0])
    b.add(sums[0], external, sums[1])
    b.add(sums[1], state, sums[2])
    b.call("aten::copy_", state, sums[2], b.bool(False), state)
    b.output(sums[2])
    b.named["etx/note"] = es.NamedBlob(b"n" * N)
    layout = es.TensorLayout(scalar_type=FLOAT, sizes=[N], dim_order=[0])
    weights = es.PtdFile({"weight": es.NamedBlob(filled(3), layout=layout)})
    paths = folder / "model.pte", folder / "weights.ptd"
    paths[0].write_bytes(b.serialize())
    es.write_ptd(weights, paths[1])
    return paths


def cut(path: Path) -> None:
    os.truncate(path, 100)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def rewrite(path: Path) -> None:
    """Each byte, in place, from the first to the last."""
    size = path.stat().st_size
    with path.open("rb+") as file:
        file.write(b"\xff" * size)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(N))


def unlink(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(b"\xff" * N)
    other.replace(path)


def open_both(paths: tuple[Path, Path]) -> Any:
    with paths[0].open("rb") as program, paths[1].open("rb") as weights:
        runtime = Runtime.get()
        return runtime.load_program(program, data_paths=[weights], mmap=False)


def load_paths(paths: tuple[Path, Path]) -> Any:
    return Runtime.get().load_program(paths[0], data_paths=[paths[1]], mmap=False)


@pytest.mark.parametrize("change", [cut, empty, rewrite, grow, unlink, replace])
@pytest.mark.parametrize("load", [load_paths, open_both])
def test_what_was_read_stays(
    runtime: Runtime,
    load: Callable[[tuple[Path, Path]], Any],
    change: Callable[[Path], None],
    tmp_path: Path,
) -> None:
    """Also for what is used late: another method, initial values, named data."""
    paths = write_files(tmp_path)
    program = load(paths)
    early = program.load_method("forward")
    for path in paths:
        change(path)
    for method in (early, program.load_method("forward")):
        for _ in range(2):
            assert (method.execute([X])[0] == 1 + 2 + 3 + 4).all()
            method.reset_state()
    assert program.named_data("etx/note") == b"n" * N


def locked(array: Any) -> Any:
    array.flags.writeable = False
    return array


def map_writable(data: bytearray) -> Any:
    path = Path(f"mapped-{len(data)}")
    path.write_bytes(data)
    return np.memmap(path, np.uint8, mode="r+")


WRITABLE: dict[str, Callable[[bytearray], tuple[Any, Any]]] = {
    "bytearray": lambda data: (data, data),
    "memoryview": lambda data: (data, memoryview(data)),
    "read-only memoryview": lambda data: (data, memoryview(data).toreadonly()),
    "slice": lambda data: (data, memoryview(data).toreadonly()[:]),
    "array": lambda data: (data, locked(np.frombuffer(data, np.uint8))),
    "view of an array": lambda data: (data, locked(np.frombuffer(data, np.uint8)[:])),
    "mapping": lambda data: (mapped := map_writable(data), memoryview(mapped).toreadonly()),
}


@pytest.mark.parametrize("kind", WRITABLE)
def test_memory_that_can_change_is_copied(
    runtime: Runtime, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = write_files(tmp_path)
    memory, given = WRITABLE[kind](bytearray(paths[0].read_bytes()))
    weights, given_weights = WRITABLE[kind](bytearray(paths[1].read_bytes()))
    program = runtime.load_program(given, data_paths=[given_weights])
    for target in (memory, weights):
        np.frombuffer(target, np.uint8)[:] = 255
    assert (program.load_method("forward").execute([X])[0] == 10).all()


def test_an_array_that_is_unlocked(runtime: Runtime, tmp_path: Path) -> None:
    array = locked(np.frombuffer(write_files(tmp_path)[0].read_bytes(), np.uint8).copy())
    program = runtime.load_program(array)
    array.flags.writeable = True
    array[:] = 255
    assert program.method_names == {"forward"}


def test_models_are_read(runtime: Runtime, tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    model = etx_runtime.load(paths[0], data=paths[1], mmap=False)
    for path in paths:
        rewrite(path)
    assert (model(X) == 10).all()


@pytest.mark.parametrize("change", [unlink, replace])
def test_a_mapped_file_may_be_replaced(
    runtime: Runtime, change: Callable[[Path], None], tmp_path: Path
) -> None:
    paths = write_files(tmp_path)
    program = runtime.load_program(paths[0], data_paths=[paths[1]])
    for path in paths:
        change(path)
    assert (program.load_method("forward").execute([X])[0] == 10).all()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.pte", tmp_path):
        with pytest.raises(LoadError, match=str(path)) as caught:
            etx_runtime.load(path, mmap=False)
        assert caught.value.code == 0x22
    (tmp_path / "empty.pte").touch()
    with pytest.raises(LoadError, match="shorter than 64 bytes"):
        etx_runtime.load(tmp_path / "empty.pte", mmap=False)


def test_the_command_reads(plugin: Path, tmp_path: Path) -> None:
    paths = write_files(tmp_path)
    environment = {**os.environ, "ETX_PLUGINS": "", "ETX_PLUGIN_PATHS": str(plugin)}
    command = [sys.executable, "-m", "etx_schema.cli", "run", str(paths[0]), "--no-mmap"]
    command += ["--data", str(paths[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert f"float32, shape [{N}]" in done.stdout
