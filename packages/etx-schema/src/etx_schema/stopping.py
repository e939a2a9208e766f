# SPDX-License-Identifier: BSD-3-Clause
"""Commands that are told to stop: clean-up runs, no process of theirs goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

SIGNALS = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
)
PATIENCE = 5.0
"""Seconds that a process may take to end by itself when it is told to."""


class Stopped(KeyboardInterrupt):
    """A signal arrived; it is sent again when the block of `stopping` has been left."""


class _State:
    """What stands still while `held` is above 0, and the signal that arrived, the first of them."""

    held = 0
    signal: int | None = None
    raised_at: float | None = None
    reminder: threading.Timer | None = None


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Let SIGTERM, SIGHUP and SIGINT raise, so that the block is left as after any error.

    Then the signal is sent again: the process ends by it, as it would have at once. Signals that
    are ignored, or have a handler of the application, stay as they are, and so do other threads.
    """
    if threading.current_thread() is not threading.main_thread() or _taken(SIGNALS):
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    plain = (signal.SIG_DFL, signal.default_int_handler)
    _State.signal, _State.raised_at = None, None
    try:
        for number, handler in before.items():
            if handler in plain:
                signal.signal(number, _receive)
        with contextlib.suppress(Stopped):
            yield
    finally:
        for number, handler in before.items():
            if handler in plain:
                signal.signal(number, handler)
        if _State.reminder is not None:
            _State.reminder.cancel()
            _State.reminder = None
        if _State.signal is not None:
            signal.raise_signal(_State.signal)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let a signal wait for the end of the block: of steps that belong together."""
    _State.held += 1
    try:
        yield
    finally:
        _State.held -= 1
        _stop()


@contextlib.contextmanager
def scratch_folder(prefix: str = "etx-", beside: Path | None = None) -> Iterator[Path]:
    """Give a new folder that is gone afterwards, in `beside` or where temporary files lie."""
    folder = None
    try:
        with held():
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
        yield folder
    finally:
        if folder is not None:
            with held():
                shutil.rmtree(folder, ignore_errors=True)


def replace_folder(new: Path, old: Path) -> None:
    """Put a folder in the place of another one, or of none."""
    with held():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(new, old)


def run_child(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command and return what it printed; what it started ends with it if we are stopped."""
    options = {"stderr": subprocess.PIPE, **options}
    with start_child(command, **options) as process:
        printed, complained = process.communicate()
    return subprocess.CompletedProcess(list(command), process.returncode, printed, complained)


@contextlib.contextmanager
def start_child(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Give a process whose output is read as text; it and what it started end with the block."""
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options}
    process = None
    try:
        with held():
            process = subprocess.Popen(
                list(command), text=True, errors="replace", start_new_session=True, **given
            )
        yield process
        process.wait()
    except BaseException:
        if process is not None and process.poll() is None:
            with held():
                _end(process)
        raise
    finally:
        for pipe in (process.stdout, process.stderr) if process is not None else ():
            if pipe is not None:
                pipe.close()


def _end(process: subprocess.Popen[str]) -> None:
    """Tell a process and its children to end, and wait until they have."""
    _tell(process, signal.SIGTERM)
    try:
        process.communicate(timeout=PATIENCE)  # to the end of the pipe, which its children have too
    except (subprocess.TimeoutExpired, ValueError):
        _tell(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()
    for word in ("SIGTERM", "SIGKILL"):
        for number in _living(process.pid):
            with contextlib.suppress(OSError):
                os.kill(number, getattr(signal, word))
        deadline = time.monotonic() + PATIENCE
        while _living(process.pid) and time.monotonic() < deadline:
            time.sleep(0.01)


def _living(session: int) -> list[int]:
    """Return the processes of a session, where the system lists them.

    A build tool gives its jobs groups of their own, and waits only for the first of each.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            state, _, _, its = path.read_text().rpartition(")")[2].split()[:4]
            if int(its) == session and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def _tell(process: subprocess.Popen[str], number: int) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()


def _taken(numbers: Sequence[int]) -> bool:
    return any(signal.getsignal(number) is _receive for number in numbers)


def _receive(number: int, frame: FrameType | None) -> None:
    if _State.signal is None:
        _State.signal = number
    _stop()


def _stop() -> None:
    """Raise for a signal that arrived; what cleans up is not stopped, unless it hangs."""
    if _State.signal is None or _State.held:
        return
    if _State.raised_at is None or time.monotonic() > _State.raised_at + 2 * PATIENCE:
        _State.raised_at = time.monotonic()
        _State.reminder = threading.Timer(2 * PATIENCE + 0.1, _remind)
        _State.reminder.daemon = True
        _State.reminder.start()
        raise Stopped


def _remind() -> None:
    """Send the signal again: what a finalizer or a callback raises, the interpreter ignores."""
    number, main = _State.signal, threading.main_thread().ident
    if number is not None and main is not None and _taken((number,)):
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, number)
        else:
            signal.raise_signal(number)
