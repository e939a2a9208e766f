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
    path = _path(source, "read")
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

    On any error `path` is as it was. A device, a pipe and standard output are written to directly.
    """
    path = _path(path, "write")
    try:
        if is_stream(path):
            with path.open("wb") as file:
                file.writelines(chunks)
            return
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory; give the name of a file")
        _write_beside(target, chunks)
    except OSError as error:
        raise FileError(f"cannot write {path}: {_reason(error)}") from error


def check_writable(path: PathLike) -> None:
    """Raise FileError where `write_atomically` could not write `path`; nothing is left there."""
    name = _path(path, "write")
    try:
        if is_stream(name):
            name.stat()
        if os.fspath(path).endswith(("/", os.sep)) or _is_directory(name):
            raise IsADirectoryError
        if not is_stream(name):
            _try_in((Path(os.path.realpath(name)) if name.is_symlink() else name).parent)
    except OSError as error:
        raise FileError(f"cannot write {path}: {_advice(error)}") from error


def check_folder(path: PathLike) -> None:
    """Raise FileError where files could not be written to the folder `path`, or it not be made."""
    name = _path(path, "write to")
    try:
        nearest = name
        while nearest != nearest.parent and not _is_there(nearest):
            nearest = nearest.parent
        _try_in(nearest)
    except OSError as error:
        raise FileError(f"cannot write to {path}: {_advice(error)}") from error


def _is_there(path: Path) -> bool:
    """Tell whether `path` exists. Errors: OSError where no file can have the name."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path.is_symlink()
    return True


def _is_directory(path: Path) -> bool:
    return _is_there(path) and path.is_dir()


def _try_in(folder: Path) -> None:
    """Make a file in `folder` and remove it."""
    if not folder.is_dir():
        is_there = folder.exists() or folder.is_symlink()
        said = f"{folder} is not a folder" if is_there else f"there is no folder {folder}"
        raise NotADirectoryError(None, f"{said}; make it, or give another name")
    name, handle = _make_beside(folder, 0o600)
    os.close(handle)
    os.unlink(name)


def _advice(error: OSError) -> str:
    """Return the reason, and what to do."""
    reason = _reason(error)
    return reason if "; " in reason else f"{reason}; give another name"


def is_stream(path: PathLike) -> bool:
    """Tell whether `path` is a device, a pipe or a descriptor, which cannot be replaced."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _write_beside(target: Path, chunks: Iterable[Blob]) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    name, handle = _make_beside(target.parent, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _make_beside(folder: Path, mode: int) -> tuple[Path, int]:
    """Make an empty file in `folder`: the system takes the umask from its permissions."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        name = folder / f".etx-{os.urandom(8).hex()}.tmp"
        try:
            return name, os.open(name, flags, mode)
        except FileExistsError:
            continue


def _path(path: PathLike, what: str) -> Path:
    """Return `path`; raise FileError where no file of this system can have the name."""
    if not os.fspath(path):
        raise FileError(f"cannot {what} '': the name is empty; give one")
    try:
        if b"\0" not in os.fsencode(path):
            return Path(path)
    except UnicodeEncodeError:
        pass
    raise FileError(f"cannot {what} {os.fspath(path)!r}: no file can have this name")


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    if isinstance(error, IsADirectoryError):
        return "it is a directory; give the name of a file"
    return error.strerror or str(error)
