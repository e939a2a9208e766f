# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be written is refused before any work, by every option of every command."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from etx_schema import cli
from etx_schema.outputs import InPlaceFile, Output, OutputFolder, OutputOrDash

DATA = Path(__file__).parent / "data"
COMMANDS = (
    *("bench", "bundle", "check", "compare", "compile", "diff", "memory", "profile", "report"),
    *("run", "select", "show", "size", "strip", "targets", "verify"),
)
WRITES = re.compile(r"\b(writes?|draw|keep the steps|where they go|a folder of its own)\b")
FILES = re.compile(r"\b(FILE|DIR|PATH|OUT)\b")


@cache
def options_of(command: str) -> list[argparse.Action]:
    """Return what the parser of a command takes."""
    (choices,) = (
        action.choices
        for action in cli.build_parser(command)._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return list(choices[command]._actions)


def is_output(action: argparse.Action) -> bool:
    return isinstance(action.type, type) and issubclass(action.type, Output)


OUTPUTS = [
    (command, action.option_strings[-1])
    for command in COMMANDS
    for action in options_of(command)
    if is_output(action)
]


def action_of(command: str, option: str) -> argparse.Action:
    (found,) = (a for a in options_of(command) if option in a.option_strings)
    return found


def words_of(command: str, option: str, name: str, file: str = "absent.pte") -> list[str]:
    """Return a command with one output, and what it cannot be without."""
    words = [command]
    for action in options_of(command):
        if option in action.option_strings:
            continue
        if not action.option_strings and action.nargs != "?":
            words.append(file)
        elif action.option_strings and action.required:
            words += [action.option_strings[-1], "fine.out"]
    return [*words, f"{option}={name}"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "there").mkdir()
    os.symlink("loop", tmp_path / "loop")
    os.symlink("absent/out", tmp_path / "dangling")
    shutil.copy(DATA / "add.pte", tmp_path / "ok.pte")
    return tmp_path


def state_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        yield str(path), path.read_bytes() if path.is_file() else b""


def test_the_parser_says_which_options_write() -> None:
    """An option that names a file and says that it is written has a type that checks it."""
    missing = [
        f"etx {command} {action.option_strings}"
        for command in COMMANDS
        for action in options_of(command)
        if action.option_strings and action.choices is None and action.type is None
        if FILES.search(str(action.metavar)) and WRITES.search(action.help or "")
    ]
    assert not missing
    assert {command for command, _ in OUTPUTS} == {
        *("bundle", "compare", "compile", "memory", "profile", "report", "run", "select"),
        *("strip", "verify"),
    }
    assert len(OUTPUTS) >= 18


BAD = {
    "absent/out": "there is no folder absent; make it, or give another name",
    "file/out": "file is not a folder; make it, or give another name",
    "file/deeper/out": "",
    "there": "it is a directory; give the name of a file",
    "there/": "it is a directory; give the name of a file",
    "new/": "it is a directory; give the name of a file",
    "": "the name is empty; give one",
    "loop": "Too many levels of symbolic links; give another name",
    "dangling": "; make it, or give another name",
    "x" * 300: "File name too long; give another name",
    "a\0b": "no file can have this name",
    "/proc/absent": "no such file or folder; give another name",
    "/dev/fd/987": "no such file or folder; give another name",
}
BAD_FOLDERS = ("file", "file/out", "file/a/b", "", "loop", "dangling", "x" * 300, "a\0b")


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_a_bad_name_is_refused_first(
    command: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = action_of(command, option).type
    before = [*state_of(folder)]
    names = dict.fromkeys(BAD_FOLDERS, "") if kind is OutputFolder else BAD
    for name, reason in names.items():
        start = time.monotonic()
        code = cli.main(words_of(command, option, name))
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), name
        assert err.startswith("etx: cannot write"), (name, err)
        assert len(err.splitlines()) == 1
        assert reason in err, name
        assert name[:100].replace("\0", "") in err.replace("\\x00", ""), err
        assert "absent.pte" not in err
        assert time.monotonic() - start < 2
        assert [*state_of(folder)] == before


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_a_good_name_is_taken(
    command: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is left as it was when the file that is read cannot be."""
    names = ["new.out", "file", "there/out", str(folder / "new")]
    if option != "--reduce":  # it has files beside it
        names += ["/dev/null", "/dev/stdout"]
    if action_of(command, option).type is OutputFolder:
        names = ["new", "there", "there/a/b", "."]
    if action_of(command, option).type is OutputOrDash:
        names.append("-")
    before = [*state_of(folder)]
    for name in names:
        assert cli.main(words_of(command, option, name)) == 2
        assert "cannot write" not in capsys.readouterr().err
        assert [*state_of(folder)] == before


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_what_is_read_is_not_overwritten(
    command: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = action_of(command, option).type
    if kind is OutputFolder:
        return
    os.symlink("ok.pte", folder / "other")
    before = [*state_of(folder)]
    for name in ("ok.pte", "./ok.pte", "other", str(folder / "ok.pte")):
        options = argparse.Namespace()
        words = words_of(command, option, name, "ok.pte")
        if kind is InPlaceFile:
            cli.build_parser(command).parse_args(words, options)
            cli.refuse_clashes(vars(options).values())
            continue
        assert cli.main(words) == 2
        assert f"cannot write {name}: it is read, too; give another" in capsys.readouterr().err
        assert [*state_of(folder)] == before


@pytest.mark.parametrize(
    "line",
    [
        "report ok.pte -o a.html --overlay ./a.html",
        "run ok.pte --etdump a.bin --values all",
        "run ok.pte --etdump a.etdp --debug-buffer a.etdp --values all",
        "compare ok.pte --eager net.py:net --reduce a.npz",
        "compile net.py:net -o a.pte --weights a.pte",
    ],
)
def test_two_outputs_have_two_names(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [*state_of(folder)]
    assert cli.main(line.split()) == 2
    assert "it is the name of two outputs; give another" in capsys.readouterr().err
    assert [*state_of(folder)] == before


@pytest.mark.parametrize(
    ("line", "folders"),
    [
        ("run ok.pte --etdump a.etdp --values all", ["a.bin"]),
        ("run ok.pte --output-dir out", ["out/output_0.npy"]),
        ("run ok.pte --output-dir out --format npz", ["out/outputs.npz"]),
        ("compare ok.pte --eager net.py:net --reduce a.pte", ["a.npz"]),
        ("compare ok.pte --eager net.py:net --reduce a.pte", ["a.expected.npz"]),
        ("compile net.py:net -o a.pte --stages", ["a.pte.stages.json"]),
    ],
)
def test_names_that_follow_are_checked(
    line: str, folders: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in folders:
        (folder / name).mkdir(parents=True)
    before = [*state_of(folder)]
    assert cli.main(line.split()) == 2
    assert f"cannot write {folders[-1]}: it is a directory" in capsys.readouterr().err
    assert [*state_of(folder)] == before


def test_names_of_folders_that_follow_are_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.pte.passes").write_text("")
    assert cli.main(["compile", "net.py:net", "-o", "a.pte", "--dump-passes"]) == 2
    assert "cannot write to a.pte.passes: a.pte.passes is not a folder" in capsys.readouterr().err


def test_in_place_is_where_it_is_meant() -> None:
    found = {f"{c} {o}" for c, o in OUTPUTS if action_of(c, o).type is InPlaceFile}
    assert found == {"strip --output", "bundle --output", "run --save-state"}
