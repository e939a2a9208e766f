# SPDX-License-Identifier: BSD-3-Clause
"""The delegate that runs blobs: a shared library that etx-runtime loads as a plugin."""

from __future__ import annotations

import os

_FOLDER = os.path.dirname(os.path.realpath(__file__))

XNNPACK_VERSION = "2024-11-08 (4ea82e5)"


def library_path() -> str:
    """Return the path of the plugin."""
    return os.path.join(_FOLDER, "etx_backend_xnnpack.so")


def target_path() -> str:
    """Return the path of the target that lists the backend."""
    return os.path.join(_FOLDER, "xnnpack.json")


def xnnpack_version() -> str:
    """Return the date and commit of the XNNPACK in the plugin."""
    return XNNPACK_VERSION
