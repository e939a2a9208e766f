# SPDX-License-Identifier: BSD-3-Clause
"""The errors of all packages derive from one class."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


class EtxError(Exception):
    """Base of every error that ETX raises on purpose; its text is meant for the user."""


class EtxWarning(UserWarning):
    """Warn of something that was left out; the command goes on."""


class ContributionError(EtxError):
    """Report an installed package whose contribution to ETX cannot be used."""


class FileError(EtxError):
    """Report a file or folder that cannot be read or written."""


class ProgramError(EtxError):
    """Report bytes that are not a valid program; `offset` is where, from the start of the file."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        self.offset = offset
        super().__init__(message if offset is None else f"byte {offset}: {message}")


class UnknownFieldError(ProgramError):
    """Refuse to rewrite a file whose newer fields would be lost."""


class TargetError(EtxError):
    """Report a target that does not exist or is not well formed."""


@contextlib.contextmanager
def naming(*files: str | os.PathLike[str]) -> Iterator[None]:
    """Let an EtxError of what is done with these begin with their names, unless it says one."""
    try:
        yield
    except EtxError as error:
        names = [os.fspath(file) for file in files]
        if any(name in str(error) for name in names):
            raise
        raise EtxError(f"{', '.join(names)}: {error}") from error
