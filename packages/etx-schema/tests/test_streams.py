# SPDX-License-Identifier: BSD-3-Clause
"""Standard output may be full, closed, or unable to show a character: a command says so."""

from __future__ import annotations

import subprocess
import sys

import pytest
from etx_schema import NamedBlob, write_pte
from etx_schema.entry_points import EtxWarning, warn_of
from etx_schema.streams import complain
from programs import counter

COMMANDS = {
    "nothing": [],
    "--help": ["--help"],
    "--version": ["--version"],
    "show": ["show", "FILE"],
    "show json": ["show", "FILE", "--json"],
    "check": ["check", "FILE"],
    "check json": ["check", "FILE", "--json"],
    "targets": ["targets"],
    "targets json": ["targets", "--json"],
    "memory": ["memory", "FILE"],
    "memory json": ["memory", "FILE", "--json"],
    "strip": ["strip", "FILE", "-o", "OUT"],
    "help of one": ["strip", "--help"],
}


@pytest.fixture
def program(tmp_path):
    write_pte(counter(), tmp_path / "m.pte")
    return tmp_path / "m.pte"


def shell(words, program, rest, **env):
    given = {"FILE": str(program), "OUT": str(program.with_name("out.pte"))}
    command = [sys.executable, "-m", "etx_schema.cli", *(given.get(w, w) for w in words)]
    return subprocess.run(
        ["bash", "-c", f'"$@" {rest}', "bash", *command],
        capture_output=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **env},
    )


UNBUFFERED = [(name, "1") for name in ("nothing", "--help", "help of one", "show")]


@pytest.mark.parametrize(("name", "unbuffered"), [*((name, "") for name in COMMANDS), *UNBUFFERED])
def test_full_output(name, unbuffered, program):
    done = shell(COMMANDS[name], program, "> /dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.stderr == b"etx: standard output cannot be written: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("name", ["show", "strip", "--version"])
def test_closed_output(name, program):
    done = shell(COMMANDS[name], program, ">&-")
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


def test_full_error_output(program):
    done = shell(["show", "missing"], program, "2> /dev/full")
    assert done.returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_text_that_the_terminal_lacks(encoding, program):
    pte = counter()
    pte.named_data["weiß_🙂"] = NamedBlob(b"x")
    path = program.with_name("моя_🙂.pte")
    write_pte(pte, path)
    done = shell(["show", str(path)], program, "", PYTHONIOENCODING=encoding)
    assert done.stderr == b""
    assert "моя_🙂.pte".encode(encoding, "backslashreplace") in done.stdout
    assert "weiß_🙂".encode(encoding, "backslashreplace") in done.stdout


def test_into_a_pipe(program):
    whole = shell(["strip", "FILE", "-o", "OUT"], program, "")
    piped = shell(["strip", "FILE", "-o", "/dev/stdout"], program, "| cat")
    assert whole.returncode == piped.returncode == 0
    assert piped.stdout == program.with_name("out.pte").read_bytes()
    assert piped.stderr == b"/dev/stdout: written\n"


def test_into_a_redirected_file(program):
    beside = program.with_name("redirected.pte")
    done = shell(["strip", "FILE", "-o", "/dev/stdout"], program, f"> {beside}")
    assert done.returncode == 0
    shell(["strip", "FILE", "-o", "OUT"], program, "")
    assert beside.read_bytes() == program.with_name("out.pte").read_bytes()


def test_warnings_are_lines(etx, monkeypatch):
    def warn(_):
        warn_of("a thing is odd", "some-package")
        warn_of("a thing is odd", "some-package")
        return []

    monkeypatch.setattr("etx_schema.entry_points.entries", warn)
    code, _, err = etx("targets")
    assert code == 0
    assert err == (
        "etx: warning: a thing is odd; it is left out, reinstall or remove some-package\n"
    )
    with pytest.warns(EtxWarning, match="odd"):
        warn_of("a thing is odd", "")


def test_names_of_files_do_not_steer_the_terminal(capsys):
    """Control characters are printed as escapes, very long names by both ends."""
    complain(f"a.pte: no method 'b\x1b[31m\0\u2028' (it has: {'x' * 9000}é)\nsecond line")
    said = capsys.readouterr().err
    assert said.startswith("etx: a.pte: no method 'b\\x1b[31m\\x00\\u2028' (it has: xxx")
    assert said.endswith("xé)\nsecond line\n")
    assert len(said) < 400
