# SPDX-License-Identifier: BSD-3-Clause
"""Portable kernels for ETX: one shared library that etx-runtime loads as a plugin."""

from __future__ import annotations

from pathlib import Path

from etx_kernels_portable._version import __version__

__all__ = ["__version__", "library_path", "target_path"]

_FOLDER = Path(__file__).resolve().parent


def library_path() -> str:
    """Return the path of the plugin."""
    return str(_FOLDER / "etx_kernels_portable.so")


def target_path() -> str:
    """Return the path of the target that lists the plugin's operators."""
    return str(_FOLDER / "etx.json")
