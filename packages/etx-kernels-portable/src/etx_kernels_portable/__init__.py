# SPDX-License-Identifier: BSD-3-Clause
"""Portable kernels for ETX: one shared library that etx-runtime loads as a plugin."""

from __future__ import annotations

import os

from etx_kernels_portable._version import __version__

__all__ = ["__version__", "library_path", "target_path"]

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def library_path() -> str:
    """Return the path of the plugin."""
    return os.path.join(_FOLDER, "etx_kernels_portable.so")


def target_path() -> str:
    """Return the path of the target that lists the plugin's operators."""
    return os.path.join(_FOLDER, "etx.json")
