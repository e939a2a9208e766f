# SPDX-License-Identifier: BSD-3-Clause
"""Who is told what the compiler is doing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Progress", "method_name", "naming", "report", "reporting"]

Progress = Callable[[str, int, int], None]
"""Called when a step begins: its name, how many steps of its stage are done, how many it has."""

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)
_METHOD: ContextVar[str] = ContextVar("method", default="")


@contextmanager
def reporting(progress: Progress | None) -> Iterator[None]:
    """Tell `progress` of every step within; None leaves it to who listens already."""
    token = _LISTENER.set(_LISTENER.get() if progress is None else progress)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def naming(method: str) -> Iterator[None]:
    """Name the method that the steps within belong to."""
    token = _METHOD.set(method)
    try:
        yield
    finally:
        _METHOD.reset(token)


def method_name() -> str:
    """Return the method that the steps now belong to, empty where there is only one."""
    return _METHOD.get()


def report(step: str, done: int = 0, total: int = 1) -> None:
    """Say that a step begins."""
    listener = _LISTENER.get()
    if listener is not None:
        method = _METHOD.get()
        listener(f"{method}: {step}" if method else step, done, total)
