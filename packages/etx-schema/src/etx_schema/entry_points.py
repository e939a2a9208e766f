# SPDX-License-Identifier: BSD-3-Clause
"""What other installed packages contribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def contributions(group: str) -> list[EntryPoint]:
    """Return the entry points of `group`, by name; of two equal names the first on the path."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return sorted(found.values(), key=lambda entry: entry.name)
