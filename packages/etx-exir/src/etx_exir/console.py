# SPDX-License-Identifier: BSD-3-Clause
"""Progress for people: a line on the terminal when lowering takes long."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Protocol, TextIO

__all__ = ["CHOICES", "Console"]

CHOICES = ("auto", "always", "never")
PATIENCE = 2.0
"""Seconds after which something is shown."""

State = tuple[str, int, int]


class _Display(Protocol):
    def show(self, what: str, done: int, total: int) -> None: ...

    def close(self) -> None: ...


class Console:
    """A `Progress` that shows the step on `stream`, standard error unless given.

    `auto` shows it on a terminal, when the whole has taken `patience` seconds, and takes it away
    at the end; `always` writes a line for each step, terminal or not; `never` nothing.
    """

    def __init__(
        self, when: str = "auto", stream: TextIO | None = None, patience: float = PATIENCE
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._when = when
        self._lock = threading.Lock()
        self._last: State = ("", 0, 1)
        self._display: _Display | None = None
        self._timer = threading.Timer(patience, self._open)
        self._timer.daemon = True

    def __enter__(self) -> Console:
        if self._when == "always":
            self._display = _Lines(self._stream)
        elif self._when == "auto" and self._stream.isatty():
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self.clear()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take note of a step, and show it if it is time to."""
        with self._lock:
            self._last = (what, done, total)
            if self._display is not None:
                self._display.show(what, done, total)

    def clear(self) -> None:
        """Take away what is shown, until the next step."""
        with self._lock:
            if self._display is not None:
                self._display.close()

    def _open(self) -> None:
        with self._lock:
            self._display = _on_terminal(self._stream)
            if self._last[0]:
                self._display.show(*self._last)


def _on_terminal(stream: TextIO) -> _Display:
    try:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return _Line(stream)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=RichConsole(file=stream), transient=True)
    return _Bar(bar)


class _Lines:
    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.begin = time.perf_counter()

    def show(self, what: str, done: int, total: int) -> None:
        seconds = time.perf_counter() - self.begin
        self.stream.write(f"{seconds:6.1f} s  {_text(what, done, total)}\n")
        self.stream.flush()

    def close(self) -> None:
        pass


class _Line:
    ERASE = "\r\x1b[2K"

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def show(self, what: str, done: int, total: int) -> None:
        self.stream.write(f"{self.ERASE}{_text(what, done, total)}")
        self.stream.flush()

    def close(self) -> None:
        self.stream.write(self.ERASE)
        self.stream.flush()


class _Bar:
    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.task = bar.add_task("")

    def show(self, what: str, done: int, total: int) -> None:
        self.bar.start()
        self.bar.update(self.task, description=what, completed=done, total=total)

    def close(self) -> None:
        self.bar.stop()


def _text(what: str, done: int, total: int) -> str:
    return what if total == 1 else f"{what} ({done + 1}/{total})"
