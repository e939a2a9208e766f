# SPDX-License-Identifier: BSD-3-Clause
"""The files of targets that installed packages offer, by name."""

from __future__ import annotations

from pathlib import Path

from etx_schema.entry_points import contributions, describe, name_of, use, warn_of
from etx_schema.errors import EtxError, TargetError

GROUP = "etx.targets"
CARRIED = "etx.targets.carried"
DEFAULT = "etx"


def target_paths() -> dict[str, Path]:
    """Return the targets that installed packages offer, by name, without broken ones.

    What is installed here goes before the table of the same name that a compiler carries.
    """
    return {**paths_of(CARRIED), **paths_of(GROUP)}


def paths_of(group: str) -> dict[str, Path]:
    """Return the targets of one group of entry points."""
    found = {}
    for entry in contributions(group):
        if entry.name in found:
            continue
        try:
            path = Path(use(entry))
            if not path.is_file():
                raise TargetError(f"{str(path)!r} is not a file")
            found[entry.name] = path
        except Exception as error:
            reason = str(error) if isinstance(error, EtxError) else describe(error)
            warn_of(f"target {entry.name!r} cannot be used ({reason})", name_of(entry.dist))
    return found
