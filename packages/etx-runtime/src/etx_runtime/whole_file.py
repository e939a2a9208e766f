# SPDX-License-Identifier: BSD-3-Clause
"""Write files that are there whole, or as they were before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


def write(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Let `fill` write to a file beside `path`, then give it this name.

    Raises OSError with the name `path`.
    """
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(handle, "wb") as file:
            fill(file)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays by name, as `write` does."""
    write(path, lambda file: np.savez(file, allow_pickle=False, **arrays))
