# SPDX-License-Identifier: BSD-3-Clause
"""Who is told how far a quantization is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Progress", "shown"]

Progress = Callable[[str, int, int], None]
"""Called when a step begins: its name, how many steps of its stage are done, how many it has."""

PATIENCE = 2.0
"""Seconds after which a terminal shows something."""


@contextmanager
def shown(progress: Progress | None) -> Iterator[Progress]:
    """Yield ``progress``, or what shows steps on a terminal where there is one and rich."""
    if progress is not None:
        yield progress
        return
    bar = _bar() if sys.stderr.isatty() else None
    if bar is None:
        yield lambda step, done, total: None
        return
    begin, task = time.monotonic(), bar.add_task("")

    def show(step: str, done: int, total: int) -> None:
        if time.monotonic() - begin > PATIENCE:
            bar.start()
            bar.update(task, description=step, completed=done, total=total)

    try:
        yield show
    finally:
        bar.stop()


def _bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
