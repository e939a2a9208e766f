# SPDX-License-Identifier: BSD-3-Clause
"""Read files without copying them; write them whole or not at all."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Union

from etx_schema.codec import Blob
from etx_schema.errors import FileError

PathLike = Union[str, "os.PathLike[str]"]


def load_bytes(source: PathLike | Blob) -> memoryview:
    """Return the bytes of a file (mapped, not copied) or of a buffer."""
    if not isinstance(source, (str, os.PathLike)):
        return memoryview(source).cast("B")
    path = Path(source)
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(file.read())
            try:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except (OSError, ValueError):
                return memoryview(file.read())
    except OSError as error:
        raise FileError(f"cannot read {path}: {_reason(error)}") from error


def write_atomically(path: PathLike, chunks: Iterable[Blob]) -> None:
    """Write `chunks` to a temporary file beside `path`, then give it that name.

    On any error `path` is as it was. A device or pipe is written to directly.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory; give the name of a file")
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(chunks)
            return
        _write_beside(target, chunks)
    except OSError as error:
        raise FileError(f"cannot write {Path(path)}: {_reason(error)}") from error


def _write_beside(target: Path, chunks: Iterable[Blob]) -> None:
    import tempfile

    handle, name = tempfile.mkstemp(
        prefix=f".{target.name[:64]}.", suffix=".tmp", dir=target.parent
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(target: Path) -> int:
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    if isinstance(error, IsADirectoryError):
        return "it is a directory; give the name of a file"
    return error.strerror or str(error)
