# SPDX-License-Identifier: BSD-3-Clause
"""The standard streams of a command: any text can be printed, and what is lost is reported."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO

from etx_schema.errors import EtxWarning


@contextlib.contextmanager
def tolerant() -> Iterator[None]:
    """Escape characters that a stream cannot encode; print each of our warnings once, as a line."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    shown: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", EtxWarning)
        plain = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if not issubclass(category, EtxWarning):
                plain(message, category, *rest)
            elif str(message) not in shown:
                shown.add(str(message))
                complain(f"warning: {message}")

        warnings.showwarning = show  # type: ignore[assignment]
        yield


LONG = re.compile(r"\S{400,}")
ENDS = 120


def complain(text: str) -> None:
    """Print a line on standard error, if that is possible; names in it as a terminal takes them.

    They come from files: of very long ones both ends are printed, control characters as escapes.
    """
    short = LONG.sub(lambda name: f"{name[0][:ENDS]}...{name[0][-ENDS:]}", text)
    shown = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in short)
    with contextlib.suppress(OSError, ValueError):
        print(f"etx: {shown}", file=sys.stderr)
    flush(sys.stderr)


def flush(stream: TextIO | None) -> OSError | None:
    """Flush a stream; return why it cannot be written, and drop what is left of it."""
    if stream is None:
        return None
    try:
        stream.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None
