# SPDX-License-Identifier: BSD-3-Clause
"""What commands write: an option of one of these types is refused before any work.

    parser.add_argument("-o", "--output", type=OutputFile, ...)

Names that follow from others are checked by `check_writable` and `check_folder`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

from etx_schema.errors import FileError
from etx_schema.files import check_folder, check_writable, is_stream

__all__ = ["InPlaceFile", "Output", "OutputFile", "OutputFolder", "OutputOrDash", "refuse_clashes"]


class Output(str):
    """The name of what a command writes."""

    may_be_read = False


class OutputFile(Output):
    """The name of a file. Errors: FileError where it cannot be written."""

    def __new__(cls, text: str) -> OutputFile:
        """Check the name."""
        check_writable(text)
        return super().__new__(cls, text)


class InPlaceFile(OutputFile):
    """The name of a file that may be the one which is read. Errors: as of `OutputFile`."""

    may_be_read = True


class OutputOrDash(Output):
    """The name of a file, or `-` for standard output. Errors: as of `OutputFile`."""

    def __new__(cls, text: str) -> OutputOrDash:
        """Check the name."""
        if text != "-":
            check_writable(text)
        return super().__new__(cls, text)


class OutputFolder(Output):
    """The name of a folder, to be made where it is absent. Errors: FileError where it cannot."""

    may_be_read = True

    def __new__(cls, text: str) -> OutputFolder:
        """Check the name."""
        check_folder(text)
        return super().__new__(cls, text)


def refuse_clashes(values: Iterable[Any]) -> None:
    """Raise FileError where the values of options have a file twice that is written, or read, too.

    `NAME=FILE`, `MODULE:FACTORY` and lists of these are names of files, too.
    """
    words = [*_words(values)]
    taken: dict[str, Output] = {}
    for word in words:
        if isinstance(word, Output) and word != "-" and not is_stream(word):
            place = os.path.realpath(word)
            if place in taken:
                raise FileError(f"cannot write {word}: it is the name of two outputs; give another")
            taken[place] = word
    read = {name for word in words if not isinstance(word, Output) for name in _names(word)}
    for place, word in taken.items():
        if not word.may_be_read and place in read and os.path.isfile(place):
            raise FileError(f"cannot write {word}: it is read, too; give another name")


def _words(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _words(value)


def _names(word: str) -> Iterator[str]:
    """Yield where files may lie that a word names."""
    for name in (word, word.partition("=")[2], word.rpartition(":")[0]):
        with contextlib.suppress(ValueError, OSError):
            yield os.path.realpath(name)
