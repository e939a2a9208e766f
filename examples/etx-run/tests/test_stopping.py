# SPDX-License-Identifier: BSD-3-Clause
"""Commands that build, told to stop at any time: no file and no process of theirs is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import torch
from etx_exir import to_edge
from machines import HERE
from torch import nn

PACKAGES = HERE.parents[1] / "packages"
ETX = Path(sys.executable).with_name("etx")
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
ARM = ["--target", "cortex-m4", "--sources", str(PACKAGES)]
SELECT = ["--static", "--level", "base", "--sources", str(PACKAGES / "etx-kernels-portable")]
COMMANDS = {
    "firmware": ["firmware", "net.pte", "-o", "out", *ARM, "--size"],
    "count": ["count", "net.pte", *ARM],
    "memory": ["memory", "net.pte", *ARM],
    "bench": ["bench", "net.pte", *ARM],
    "select": ["select", "net.pte", "-o", "out", *SELECT],
}
DELAYS = (1.0, 3.0, 6.0, 10.0)
MARK = "ETX_TEST_MARK"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pte"
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    to_edge(torch.export.export(net, (torch.ones(1, 8),))).to_executorch().save(path)
    return path


def plain() -> None:
    """Give a child the handlers of a job in front: one in the background ignores SIGINT."""
    for number in STOPS:
        signal.signal(number, signal.SIG_DFL)


def running(mark: str) -> list[str]:
    """Return the processes that have the mark in their environment, and live."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("delay", DELAYS)
def test_nothing_is_left(delay: float, model: Path, tmp_path: Path) -> None:
    marks = {name: uuid.uuid4().hex for name in COMMANDS}
    started = {name: start(name, model, tmp_path / name, marks[name]) for name in COMMANDS}
    time.sleep(delay)
    for at, (name, process) in enumerate(started.items()):
        number = STOPS[(at + DELAYS.index(delay)) % len(STOPS)]
        was_running = process.poll() is None
        process.send_signal(number)
        code = process.wait(30)
        assert code in (({-number, 128 + number}) if was_running else {0}), name
        assert not running(marks[name])
        assert list((tmp_path / name / "scratch").iterdir()) == [], name
        files = {each.name for each in (tmp_path / name / "work").iterdir()}
        assert files <= {"net.pte", *(["out"] if code == 0 else [])}, name


def start(name: str, model: Path, folder: Path, mark: str) -> subprocess.Popen[bytes]:
    """Start a command in `folder`/work, its temporary files in `folder`/scratch."""
    work, scratch = folder / "work", folder / "scratch"
    work.mkdir(parents=True)
    scratch.mkdir()
    (work / "net.pte").write_bytes(model.read_bytes())
    return subprocess.Popen(
        [str(ETX), *COMMANDS[name]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=work,
        env=os.environ | {MARK: mark, "TMPDIR": str(scratch), "CCACHE_DISABLE": "1"},
        preexec_fn=plain,
    )
