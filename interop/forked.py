# SPDX-License-Identifier: BSD-3-Clause
"""Runs scripts of this folder in the environments, forked from a process that is warm."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Lock
from typing import IO, Any

import pytest

HERE = Path(__file__).parent
IMPORTED = {
    "--host": ("torch._dynamo", "etx_exir", "etx_quant"),
    "--executorch": ("torch._dynamo", "executorch.exir"),
    "--both": ("torch._dynamo",),
}
"""What scripts begin with: in the environment of both sides, neither."""


def variables() -> dict[str, str]:
    """Return the variables of a process of another Python."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}


class Nursery:
    """A process that forks for each script."""

    def __init__(self, python: str, modules: tuple[str, ...]) -> None:
        self.lock = Lock()
        self.orders, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [python, "-W", "ignore", str(HERE / "nursery.py"), str(other.fileno()), *modules]
        self.process = subprocess.Popen(
            command, env=variables(), stdin=subprocess.DEVNULL, pass_fds=[other.fileno()]
        )
        other.close()

    def run(self, words: list[str], stdout: IO[Any], stderr: IO[Any]) -> int:
        """Return the exit code of a script, negative when a signal ended it."""
        with self.lock:
            message = json.dumps([str(HERE / words[0]), *words[1:]]).encode()
            socket.send_fds(self.orders, [message], [stdout.fileno(), stderr.fileno()])
            answer = self.orders.recv(64)
        if not answer:
            raise RuntimeError(f"{self.process.args} ended with {self.process.wait()}")
        return int(answer)

    def end(self) -> None:
        self.orders.close()
        self.process.wait()


NURSERIES: dict[str, Nursery] = {}


def execute(
    config: pytest.Config, option: str, words: list[str], stdout: IO[Any], stderr: IO[Any]
) -> int:
    """Run a script of this folder in the environment of an option; return its exit code."""
    python = config.getoption(option)
    if option not in IMPORTED:
        command = [python, "-W", "ignore", *words]
        return subprocess.call(command, cwd=HERE, env=variables(), stdout=stdout, stderr=stderr)
    if python not in NURSERIES:
        NURSERIES[python] = Nursery(python, IMPORTED[option])
    return NURSERIES[python].run(words, stdout, stderr)


def call(config: pytest.Config, option: str, *words: object) -> str:
    """Return what a script prints; fail with what it said when it fails."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        code = execute(config, option, [str(word) for word in words], out, err)
        out.seek(0)
        err.seek(0)
        printed, said = out.read(), err.read()
    assert code == 0, f"{printed}{said[-4000:]}\nexit code {code}: {words[0]}"
    return printed


def show(config: pytest.Config, option: str, *words: str) -> None:
    """Run a script, its progress on this terminal."""
    print("+", *words[:3], file=sys.stderr, flush=True)
    code = execute(config, option, list(words), sys.stderr, sys.stderr)
    if code:
        raise subprocess.CalledProcessError(code, words)


def end() -> None:
    """End the processes."""
    while NURSERIES:
        NURSERIES.popitem()[1].end()
