# SPDX-License-Identifier: BSD-3-Clause
"""Any name of a buffer goes into a state file and back; any name of a file is read and written."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import etx_runtime
import etx_schema as es
import numpy as np
import pytest
from etx_runtime import LoadError, PluginError, Runtime
from etx_runtime.commands.state_file import member_of, write_npz
from programs import Builder, addition, counter
from test_commands import commands_of

BUFFERS = [
    "plain.name_0",
    "file",
    "allow_pickle",
    "self",
    "../../evil",
    "/etc/evil",
    "a/b",
    "a\\b",
    "C:evil",
    "..",
    ".",
    "%",
    "a%2Fb",
    "x",
    "x.npy",
    "x.npy.npy",
    "a" * 300,
    "a" * 299 + "b",
    "модель",
    "重み",
    "🙂" * 100,
    "a\nb\tc",
    "a b",
    "-o",
    "NUL",
    "*?<>|\"'",
]


def with_buffers(names: list[str]) -> bytes:
    b = Builder()
    x = b.input(b.tensor((1,)))
    for index, name in enumerate(names):
        data = np.float32(index).tobytes()
        state = b.tensor((1,), data=data, name=name)
        b.call("aten::add.out", state, x, b.int(1), state, state)
    b.output(x)
    return b.serialize()


def test_every_name_of_a_buffer_is_saved_and_loaded(runtime: Runtime, tmp_path: Path) -> None:
    program, state = tmp_path / "m.pte", tmp_path / "s.npz"
    program.write_bytes(with_buffers(BUFFERS))
    np.save(tmp_path / "one.npy", np.ones(1, np.float32))
    options = ["run", str(program), "--input", str(tmp_path / "one.npy")]
    saved = commands_of(*options, "--save-state", str(state))
    assert not saved.run(saved)
    with zipfile.ZipFile(state) as archive:
        members = archive.namelist()
        assert len({*members}) == len(BUFFERS)
        for member in members:
            place = os.path.normpath(os.path.join("folder", member))
            assert os.path.dirname(place) == "folder"
            assert not {*member} & {*'/\\:\n\t"<>|*?'}
            assert len(member.encode()) <= 255
        archive.extractall(tmp_path / "unpacked")
    assert len(os.listdir(tmp_path / "unpacked")) == len(BUFFERS)
    again = tmp_path / "again.npz"
    loaded = commands_of(*options, "--load-state", str(state), "--save-state", str(again))
    assert not loaded.run(loaded)
    with np.load(again) as content:
        for index, name in enumerate(BUFFERS):
            assert content[member_of(name)] == [index + 2], name


def test_archives_of_other_programs_are_loaded(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "m.pte").write_bytes(with_buffers(["a/b", "a%b"]))
    np.savez(tmp_path / "s.npz", **{"a/b": np.full(1, 3, np.float32), "a%b": np.ones(1, "f4")})
    given = ["--load-state", str(tmp_path / "s.npz"), "--save-state", str(tmp_path / "t.npz")]
    options = commands_of("run", str(tmp_path / "m.pte"), *given, "--seed", "1")
    assert not options.run(options)
    with np.load(tmp_path / "t.npz") as content:
        assert content["a%2Fb"] - content["a%25b"] == [2]


def test_an_empty_name_has_a_member(tmp_path: Path) -> None:
    write_npz(tmp_path / "s.npz", {"": np.ones(1), "%": np.zeros(1)})
    with np.load(tmp_path / "s.npz") as content:
        assert sorted(content.files) == ["%", "%25"]


FILES = {
    "not UTF-8": os.fsdecode(b"bad\xff"),
    "spaces": " a b ",
    "new line": "a\nb",
    "dash": "-o",
    "equals": "a=b",
    "plus": "a+b",
    "colon": "a:b",
    "percent": "100%s",
    "quotes": "'\"`$(ls)",
    "other script": "модель",
    "emoji": "🙂" * 60,
    "longest": "a" * 251,
    "dots": "...",
    "backslash": "a\\b",
}


@pytest.mark.parametrize("kind", FILES)
def test_odd_names_of_files(kind: str, runtime: Runtime, plugin: Path, tmp_path: Path) -> None:
    base = f"{tmp_path}/{FILES[kind]}"
    with open(f"{base}.pte", "wb") as file:
        file.write(counter())
    x = np.ones(1, np.float32)
    for ending, save in (("npy", np.save), ("npz", np.savez), ("bin", None)):
        with open(f"{base}.{ending}", "wb") as file:
            save(file, x) if save is not None else file.write(x.tobytes())
        output, state = f"{base}.out", f"{tmp_path}/{FILES[kind][:50]}.state.npz"
        given = ["--input", f"{base}.{ending}", "--output-dir", output, "--save-state", state]
        options = commands_of("run", f"{base}.pte", *given, "--format", ending)
        assert not options.run(options)
        assert os.listdir(output)
        expect = ["--input", f"{base}.{ending}", "--load-state", state]
        options = commands_of("run", f"{base}.pte", *expect)
        assert not options.run(options)
    options = commands_of("bench", f"{base}.pte", "--iterations", "1", "--json")
    assert not options.run(options)
    assert etx_runtime.load(os.fsencode(f"{base}.pte").decode(errors="surrogateescape"))(x) == 6
    shutil.copy(plugin, f"{base}.so")
    assert runtime.load_plugin(f"{base}.so")[0] == "etx-test-plugin"


def test_odd_names_of_weights(runtime: Runtime, tmp_path: Path) -> None:
    path = f"{tmp_path}/{FILES['not UTF-8']}.ptd"
    b = Builder()
    out = b.tensor((2,))
    b.add(b.tensor((2,), memory="external", name="w"), b.input(b.tensor((2,))), out)
    b.output(out)
    es.write_ptd(
        es.PtdFile(
            {
                "w": es.NamedBlob(
                    np.ones(2, np.float32).tobytes(),
                    layout=es.TensorLayout(
                        scalar_type=es.ScalarType.FLOAT, sizes=[2], dim_order=[0]
                    ),
                )
            }
        ),
        path,
    )
    assert etx_runtime.load(b.serialize(), data=path)(np.ones(2, np.float32)).tolist() == [2, 2]


def test_a_file_that_is_not_there_is_named_once(runtime: Runtime, tmp_path: Path) -> None:
    path = f"{tmp_path}/{FILES['not UTF-8']}.pte"
    options = commands_of("run", path)
    with pytest.raises(LoadError) as caught:
        options.run(options)
    assert str(caught.value) == f"{path}: No such file or directory"


@pytest.mark.parametrize("name", [os.fsdecode(b"none\xff.pte"), "none\nthere", "a\0b", "\ud800"])
def test_files_that_are_not_there(name: str, runtime: Runtime) -> None:
    with pytest.raises(LoadError):
        etx_runtime.load(name)
    with pytest.raises(LoadError):
        etx_runtime.load(addition(), data=name)
    with pytest.raises((PluginError, ValueError)):
        runtime.load_plugin(name)
