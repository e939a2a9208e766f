# SPDX-License-Identifier: BSD-3-Clause
"""The C++ names of an image's models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from etx_schema.errors import EtxError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
KEYWORDS = """
alignas alignof and asm auto bool break case catch char class const constexpr continue
decltype default delete do double else enum explicit export extern false float for friend
goto if inline int long mutable namespace new noexcept not nullptr operator or private
protected public register return short signed sizeof static struct switch template this
throw true try typedef typeid typename union unsigned using virtual void volatile while
xor Memory Model Place Scratch Test TestTensor kTolerance
"""
"""Of the language, and what namespace `etx_firmware` has."""
GIVE = "give a name before the file, such as first="


def given_files(words: Sequence[str]) -> list[tuple[str, Path]]:
    """Return (name, file) of each `FILE` or `NAME=FILE`; no name is empty.

    Errors: EtxError where a file is given twice.
    """
    found: list[tuple[str, Path]] = []
    for word in words:
        name, equals, file = word.partition("=")
        path = Path(file) if equals and not Path(word).exists() else Path(word)
        if any(path.resolve() == other.resolve() for _, other in found):
            raise EtxError(f"{path} is given twice: give each file once")
        found.append((name if equals and path != Path(word) else "", path))
    return found


def name_models(rows: Sequence[tuple[str, Path, str]]) -> list[str]:
    """Return a name for each (name or none, file, method).

    The only one without a name is `model`. Errors: EtxError where one cannot be a name in C++, or
    is that of two models.
    """
    if len(rows) == 1 and not rows[0][0]:
        return ["model"]
    files = [file for _, file, _ in rows]
    names: dict[str, tuple[Path, str]] = {}
    for given, file, method in rows:
        name = given or file.stem
        if files.count(file) > 1:
            name += f"_{method}"
        if not given:
            name = re.sub(r"[\W_]+", "_", name, flags=re.ASCII).strip("_")
        if not NAME.fullmatch(name) or name in KEYWORDS.split():
            raise EtxError(f"{name!r}, of {file}, cannot be a name in C++: {GIVE}{file}")
        if name in names:
            other, its_method = names[name]
            raise EtxError(
                f"{name} is the name of {its_method} of {other} and of {method} of {file}: "
                f"{GIVE}{file}"
            )
        names[name] = file, method
    return list(names)
