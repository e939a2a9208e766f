# SPDX-License-Identifier: BSD-3-Clause
"""Names in which a plain search and replace found the word, too: `to_etx_executorch`."""

from __future__ import annotations

from typing import Any

__all__ = ["Replaced", "original"]

OLD, NEW = "executorch", "etx_executorch"


def original(name: str) -> str:
    """Return the name before the word in it was replaced."""
    return name.replace(NEW, OLD)


class Replaced:
    """Answers to a member's name in which the word was replaced."""

    def __getattr__(self, name: str) -> Any:
        if NEW in name:
            return getattr(self, original(name))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
