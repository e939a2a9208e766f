# SPDX-License-Identifier: BSD-3-Clause
"""Find kernel and backend libraries and load them once."""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Sequence

from etx_schema import EtxError
from etx_schema.entry_points import describe, use, warn_of

from etx_runtime import _native, installed
from etx_runtime.errors import PluginError

GROUP = "etx.plugins"
KERNELS = "etx.kernels"

_lock = allocate_lock()
_loaded: dict[str, tuple[str, str]] = {}
_left_out: dict[str, str] = {}
_is_done = False


def load_plugin(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Load the library at `path` and return the name and version of its plugin."""
    text = os.fspath(path)
    plugin = _native.load_plugin(text)
    _loaded[text] = plugin
    return plugin


def open_kernels(names: Sequence[str]) -> list[_native.Plugin]:
    """Return the libraries of kernels of these names (entry points `etx.kernels`).

    Errors: PluginError for a name that no installed package offers, or a library that cannot be
    loaded.
    """
    if not names:
        return []
    offered = {entry.name: entry for entry in reversed(installed.entry_points(KERNELS))}
    found = []
    for name in names:
        if name not in offered:
            known = ", ".join(sorted(offered)) or "none"
            raise PluginError(f"no installed package offers kernels {name!r} (installed: {known})")
        entry = offered[name]
        try:
            found.append(_native.open_plugin(use(entry)))
        except EtxError as error:
            raise PluginError(f"the kernels '{name}' of {entry.dist}: {error}") from error
    return found


def load_installed() -> None:
    """Load what is installed (entry points `etx.plugins`), limited by ETX_PLUGINS, and
    ETX_PLUGIN_PATHS; once a process. An installed plugin that cannot be loaded is left out with a
    warning, one that a variable names is a PluginError."""
    global _is_done
    if _is_done:
        return
    with _lock:
        if _is_done:
            return
        for path in filter(None, os.environ.get("ETX_PLUGIN_PATHS", "").split(os.pathsep)):
            load_plugin(path)
        _load_entry_points(os.environ.get("ETX_PLUGINS"))
        _is_done = True


def loaded_plugins() -> dict[str, tuple[str, str]]:
    """Return name and version of the loaded plugins by path."""
    return dict(_loaded)


def left_out() -> dict[str, str]:
    """Return why installed plugins could not be loaded, by name."""
    return dict(_left_out)


def _load_entry_points(chosen: str | None) -> None:
    names = None if chosen is None else {name.strip() for name in chosen.split(",") if name.strip()}
    found = installed.entry_points(GROUP)
    for entry in found:
        if names is not None and entry.name not in names:
            continue
        try:
            load_plugin(use(entry))
        except Exception as error:
            reason = str(error) if isinstance(error, EtxError) else describe(error)
            problem = f"the plugin '{entry.name}' of {entry.dist} cannot be loaded: {reason}"
            if names is not None:
                text = f"{problem}; reinstall {entry.dist}, or take it out of ETX_PLUGINS"
                raise PluginError(text) from error
            _left_out[entry.name] = problem
            warn_of(problem, entry.dist)
    missing = (names or set()) - {entry.name for entry in found}
    if missing:
        known = ", ".join(sorted(entry.name for entry in found)) or "none"
        raise PluginError(
            f"ETX_PLUGINS names what is not installed: {', '.join(sorted(missing))} "
            f"(installed: {known})"
        )
