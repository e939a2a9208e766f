# SPDX-License-Identifier: BSD-3-Clause
"""A file is written whole or not at all; every reason for a failure is named once."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from etx_schema import FileError, PteFile, read_pte, serialize_pte, write_pte
from etx_schema.files import check_folder, check_writable, write_atomically
from etx_schema.outputs import InPlaceFile, OutputFile, OutputOrDash, refuse_clashes
from programs import counter


def test_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "m.pte"
    path.write_bytes(b"old")
    write_pte(counter(), path)
    assert path.read_bytes() == serialize_pte(counter())
    assert os.listdir(tmp_path) == ["m.pte"]


def test_rewrites_the_file_it_was_read_from(tmp_path):
    path = tmp_path / "m.pte"
    write_pte(counter(), path)
    write_pte(read_pte(path), path)
    assert path.read_bytes() == serialize_pte(counter())


def test_failure_keeps_the_old_file(tmp_path):
    path = tmp_path / "m.pte"
    path.write_bytes(b"old")

    def chunks():
        yield b"half"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_atomically(path, chunks())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.pte"]


def test_full_disk(tmp_path):
    path = tmp_path / "m.pte"
    path.write_bytes(b"old")
    pte: PteFile = counter()
    pte.constants = [bytes(1 << 20)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(FileError, match=r"cannot write .*m.pte: File too large"):
            write_pte(pte, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.pte"]


def test_device_is_written_directly():
    with pytest.raises(FileError, match="cannot write /dev/full: No space left on device"):
        write_pte(counter(), "/dev/full")
    assert not os.path.isfile("/dev/full")


def test_link_is_followed(tmp_path):
    (tmp_path / "link.pte").symlink_to(tmp_path / "real.pte")
    write_pte(counter(), tmp_path / "link.pte")
    assert (tmp_path / "link.pte").is_symlink()
    assert (tmp_path / "real.pte").read_bytes() == serialize_pte(counter())


def test_permissions_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_pte(counter(), tmp_path / "m.pte")
    finally:
        os.umask(old)
    assert (tmp_path / "m.pte").stat().st_mode & 0o777 == 0o640


def test_permissions_of_the_old_file_are_kept(tmp_path):
    path = tmp_path / "m.pte"
    path.write_bytes(b"old")
    path.chmod(0o604)
    write_pte(counter(), path)
    assert path.stat().st_mode & 0o777 == 0o604


def test_the_umask_is_left_alone(tmp_path, monkeypatch):
    def umask(_):
        raise AssertionError("another thread may make a file now")

    monkeypatch.setattr(os, "umask", umask)
    write_pte(counter(), tmp_path / "m.pte")


NAMES = {
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
    "wildcard": "*?[a]",
    "backslash": "a\\b",
}


@pytest.mark.parametrize("name", NAMES)
def test_odd_names(name, tmp_path, etx, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}/{NAMES[name]}.pte"
    write_pte(counter(), path)
    assert read_pte(path).program.execution_plan
    write_pte(counter(), path)
    for command in (["show"], ["show", "--json"], ["check"], ["memory"]):
        assert etx(*command, path)[0] == 0
    for command, ending in (("strip", "pte"), ("memory", "svg"), ("memory", "json")):
        output = f"{tmp_path}/{NAMES[name]}.{ending}".replace("aa.json", "a.json")
        assert etx(command, path, "-o", output)[0] == 0
        assert os.path.getsize(output)
    target = f"{tmp_path}/{NAMES[name][:60]}.json"
    with open(target, "w") as file:
        file.write('{"name": "mine", "operators": {"aten::add.out": {}}}')
    assert etx("targets", target)[0] == 0
    assert etx("check", path, "--target", target)[0] in (0, 1)
    assert not [each for each in os.listdir() if each.endswith(".tmp")]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
@pytest.mark.parametrize("command", ["show", "check", "memory", "strip", "targets"])
def test_what_is_no_name(name, command, etx, tmp_path):
    options = ["-o", tmp_path / "out.pte"] if command == "strip" else []
    code, out, err = etx(command, f"{tmp_path}/{name}.json", *options)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    with pytest.raises(FileError, match="no file can have this name"):
        write_pte(counter(), name)


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "it is a directory"), ("missing/m.pte", "no such file or folder")],
)
def test_bad_output(name, message, tmp_path):
    with pytest.raises(FileError, match=f"cannot write .*: {message}"):
        write_pte(counter(), tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("", "it is a directory"), ("missing.pte", "no such file or folder")],
)
def test_bad_input(name, message, tmp_path):
    with pytest.raises(FileError, match=f"cannot read .*: {message}"):
        read_pte(tmp_path / name)


def test_large_constants_are_not_copied(tmp_path):
    path = tmp_path / "m.pte"
    pte = counter()
    size = 64 << 20
    pte.constants = [memoryview(bytearray(size))]
    import tracemalloc

    tracemalloc.start()
    write_pte(pte, path)
    back = read_pte(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > size
    assert len(back.constants) == 1
    assert peak < size // 16


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent/m.pte", "there is no folder .*absent; make it, or give another name"),
        ("m.pte/m.pte", "m.pte is not a folder; make it, or give another name"),
        ("folder", "it is a directory; give the name of a file"),
        ("new/", "it is a directory; give the name of a file"),
        ("n" * 300, "File name too long; give another name"),
    ],
)
def test_what_could_not_be_written_is_said_before(name, reason, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "m.pte").write_bytes(b"kept")
    with pytest.raises(FileError, match=f"cannot write .*: .*{reason}"):
        check_writable(f"{tmp_path}/{name}")
    assert sorted(os.listdir(tmp_path)) == ["folder", "m.pte"]


def test_what_can_be_written_is_left_as_it_is(tmp_path):
    (tmp_path / "m.pte").write_bytes(b"kept")
    for name in ("m.pte", "new.pte"):
        check_writable(tmp_path / name)
    check_writable(os.devnull)
    check_folder(tmp_path / "a" / "b")
    assert os.listdir(tmp_path) == ["m.pte"]
    assert (tmp_path / "m.pte").read_bytes() == b"kept"
    with pytest.raises(FileError, match=r"cannot write to .*: .*m\.pte is not a folder"):
        check_folder(tmp_path / "m.pte" / "a")


def test_nothing_is_written_over_what_is_read(tmp_path):
    name = str(tmp_path / "m.pte")
    Path(name).write_bytes(b"")
    words = [[f"{name}:Net"], [("x", name)], name, f"x={name}"]
    for word in words:
        refuse_clashes([word, InPlaceFile(name)])
        with pytest.raises(FileError, match="it is read, too; give another name"):
            refuse_clashes([word, OutputFile(name)])
    with pytest.raises(FileError, match="it is the name of two outputs; give another"):
        refuse_clashes([OutputFile(name), OutputFile(f"{tmp_path}/./m.pte")])
    refuse_clashes([OutputFile(os.devnull), OutputFile(os.devnull), OutputOrDash("-"), None, 3])
