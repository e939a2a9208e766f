# SPDX-License-Identifier: BSD-3-Clause
"""What the runtime has to say besides its exceptions."""

from __future__ import annotations

from collections.abc import Callable

from etx_runtime import _native

LEVELS = {"debug": ord("D"), "info": ord("I"), "error": ord("E"), "fatal": ord("F")}


def set_log_level(level: str) -> None:
    """Drop messages below `level`: debug, info, error or fatal.

    It is fatal unless set, as exceptions say what errors would. Info tells of each program, method
    and plugin that is loaded, with its size and time.
    """
    if level not in LEVELS:
        raise ValueError(f"expected one of {', '.join(LEVELS)}, got {level!r}")
    _native.set_log_level(LEVELS[level])


def set_log_sink(sink: Callable[[str, str], object] | None) -> None:
    """Send messages to `sink(level, message)`, from any thread, or with None to stderr again."""
    _native.set_log_sink(sink)
