# SPDX-License-Identifier: BSD-3-Clause
"""A process that is told to stop cleans up first, and ends by the signal; its children end, too."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
BEGIN = """
import os, signal, subprocess, sys, time
from pathlib import Path
from etx_schema.stopping import held, replace_folder, run_child, scratch_folder, stopping
def say(word): print(word, flush=True)
"""


def plain() -> None:
    """Give a child the handlers of a job in front: one in the background ignores SIGINT."""
    for number in STOPS:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[str]], text: str, folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + text],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)},
        preexec_fn=plain,
    )
    started.append(process)
    return process


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


@pytest.mark.parametrize("number", STOPS)
def test_clean_up_runs_and_the_process_ends_by_the_signal(
    number: signal.Signals, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    text = """
with stopping(), scratch_folder() as folder:
    (folder / "half").write_text("")
    say("ready")
    time.sleep(321)
"""
    process = start(started, text, tmp_path)
    wait_for(process, "ready")
    process.send_signal(number)
    assert process.wait(20) == -number
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_a_finalizer_lost_is_sent_again(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    text = """
class Slow:
    def __del__(self):
        say("ready")
        time.sleep(321)
with stopping(), scratch_folder() as folder:
    Slow()
    say("lost")
    time.sleep(321)
"""
    process = start(started, text, tmp_path)
    wait_for(process, "ready")
    process.send_signal(signal.SIGTERM)
    wait_for(process, "lost")
    assert process.wait(20) == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", STOPS)
def test_children_and_theirs_end(
    number: signal.Signals, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    """A pipe that they hold open ends with the last of them."""
    os.mkfifo(tmp_path / "alive")
    pipe = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    command = ["sh", "-c", "exec 3>alive; sleep 321 & echo ready >&3; wait"]
    process = start(started, f"with stopping(): run_child({command!r})", tmp_path)
    while not select.select([pipe], [], [], 0.01)[0] or os.read(pipe, 16) != b"ready\n":
        time.sleep(0.01)
    with pytest.raises(BlockingIOError):
        os.read(pipe, 1)
    process.send_signal(number)
    assert process.wait(20) == -number
    assert os.read(pipe, 1) == b""
    os.close(pipe)


@pytest.mark.parametrize("answer", ["", "trap '' TERM; "])
def test_groups_that_a_child_made_end(
    answer: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    """A build tool does so with its jobs, whose output it reads itself."""
    os.mkfifo(tmp_path / "alive")
    pipe = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    job = ["sh", "-c", f"{answer}exec 3>alive; echo ready >&3; sleep 321; sleep 321"]
    options = "stdout=-3, stderr=-3, preexec_fn=os.setpgrp"
    tool = f"import os, subprocess; subprocess.Popen({job!r}, {options}).wait()"
    text = f"""
import etx_schema.stopping
etx_schema.stopping.PATIENCE = 0.5
with stopping():
    run_child([sys.executable, "-c", {tool!r}])
"""
    process = start(started, text, tmp_path)
    while not select.select([pipe], [], [], 0.01)[0] or os.read(pipe, 16) != b"ready\n":
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == -signal.SIGTERM
    assert os.read(pipe, 1) == b""
    os.close(pipe)


def test_what_is_held_is_finished_first(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    text = """
with stopping():
    with held():
        say("ready")
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            time.sleep(0.01)
        say("finished")
    say("too far")
"""
    process = start(started, text, tmp_path)
    wait_for(process, "ready")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == "finished\n"
    assert process.returncode == -signal.SIGTERM


def test_clean_up_is_not_stopped_by_a_second_signal(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    text = """
with stopping():
    try:
        say("ready")
        time.sleep(321)
    finally:
        say("cleaning")
        time.sleep(0.5)
        say("clean")
"""
    process = start(started, text, tmp_path)
    wait_for(process, "ready")
    process.send_signal(signal.SIGTERM)
    wait_for(process, "cleaning")
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=20)[0] == "clean\n"
    assert process.returncode == -signal.SIGTERM


def test_handlers_of_the_application_and_ignored_signals_stay(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    text = """
signal.signal(signal.SIGTERM, lambda *_: say("mine"))
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with stopping():
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGTERM)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    process = start(started, text, tmp_path)
    assert process.communicate(timeout=20)[0] == "mine\n"
    assert process.returncode == 0


def test_a_child_that_ends_is_as_subprocess_says(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    text = """
done = run_child(["sh", "-c", "echo out; echo err >&2; exit 3"])
assert (done.stdout, done.stderr, done.returncode) == ("out\\n", "err\\n", 3), done
Path("old").mkdir()
with scratch_folder(".old-", Path()) as folder:
    (folder / "new").mkdir()
    (folder / "new" / "file").write_text("")
    replace_folder(folder / "new", Path("old"))
"""
    process = start(started, text, tmp_path)
    assert process.wait(20) == 0
    assert [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")] == ["old", "old/file"]
