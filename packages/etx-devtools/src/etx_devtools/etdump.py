# SPDX-License-Identifier: BSD-3-Clause
"""Read an ETDump of ETX or ExecuTorch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from etx_devtools.recorded import (
    KERNEL,
    Run,
    Seen,
    Span,
    Statistics,
    ThreadSpan,
    to_python,
)

if TYPE_CHECKING:
    from etx_schema import Blob

__all__ = [
    "KERNEL",
    "Run",
    "Seen",
    "Span",
    "Statistics",
    "ThreadSpan",
    "read_etdump",
    "to_python",
]


def read_etdump(source: str | os.PathLike[str] | Blob) -> list[Run]:
    """Read a file or its bytes. Errors: ProgramError with the byte."""
    from etx_devtools.etdump_reader import read

    return read(source)
