# SPDX-License-Identifier: BSD-3-Clause
"""What other installed packages contribute; none of them breaks a command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from etx_schema.errors import ContributionError, EtxWarning

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


def contributions(group: str) -> list[EntryPoint]:
    """Return the entry points of `group` by name, equal ones in the order of the path.

    Of equal names the first that works counts.
    """
    return sorted(entries(group), key=lambda entry: entry.name)


def entries(group: str) -> list[EntryPoint]:
    """Return all entry points of `group`; warn of packages whose entry points are unreadable."""
    from importlib.metadata import entry_points

    try:
        return list(entry_points(group=group))
    except Exception:
        return list(_readable(group))


def _readable(group: str) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions

    seen = set()
    for distribution in distributions():
        name = name_of(distribution)
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            yield from list(distribution.entry_points.select(group=group))
        except Exception as error:
            warn_of(f"the entry points of {name} cannot be read ({describe(error)})", name)


def name_of(distribution: Distribution | None) -> str:
    """Return the name of an installed package, else where its metadata are, else nothing."""
    try:
        name = distribution.metadata["Name"] if distribution is not None else ""
    except Exception:
        name = ""
    return str(name or getattr(distribution, "_path", ""))


def version_of(distribution: Distribution | None) -> str:
    """Return the version of an installed package, or nothing where it cannot be read."""
    try:
        return str(distribution.metadata["Version"] or "") if distribution is not None else ""
    except Exception:
        return ""


def use(entry: Any, *arguments: Any) -> Any:
    """Import what `entry` names and return what it returns for `arguments`.

    Errors: ContributionError for whatever is raised, `SystemExit` included.
    """
    try:
        return entry.load()(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ContributionError(f"{entry.value}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Return the type and the text of an error in one line, even if it has no text."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def warn_of(problem: str, package: str) -> None:
    """Warn of an installed package that is left out."""
    text = f"{problem}; it is left out, reinstall or remove {package or 'its package'}"
    warnings.warn(text, EtxWarning, stacklevel=3)
