# SPDX-License-Identifier: BSD-3-Clause
"""Find the program in a bundled one."""

from __future__ import annotations

from typing import Any

from etx_runtime.errors import LoadError

IDENTIFIER = b"BP08"


def unwrapped(content: Any, may_map: bool) -> Any:
    """Return the bytes of the `.pte` in a bundle, and any other path or bytes as they are."""
    if not _is_bundle(content):
        return content
    from etx_schema import ProgramError
    from etx_schema.bundle import program_of
    from etx_schema.files import load_bytes

    try:
        view = load_bytes(content)
        if isinstance(content, str) and not may_map:
            view = memoryview(bytes(view))
        return program_of(view)
    except ProgramError as error:
        place = f"{content}: " if isinstance(content, str) else ""
        raise LoadError(f"{place}a damaged bundled program: {error}") from error


def _is_bundle(content: Any) -> bool:
    if not isinstance(content, str):
        return bytes(content[4:8]) == IDENTIFIER
    try:
        with open(content, "rb") as file:
            return file.read(8)[4:] == IDENTIFIER
    except OSError:
        return False
