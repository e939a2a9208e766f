# SPDX-License-Identifier: BSD-3-Clause
"""The plugin: the simulator that runs Ethos-U blobs, and the kernels of `cortex_m::`."""

from __future__ import annotations

import os

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def library_path() -> str:
    """Return the path of the plugin."""
    return os.path.join(_FOLDER, "etx_backend_arm.so")


def target_path() -> str:
    """Return the path of the target that lists the backend."""
    return os.path.join(_FOLDER, "ethos-u.json")


def cortex_m_path() -> str:
    """Return the path of the target that lists the operators of `cortex_m::`."""
    return os.path.join(_FOLDER, "cortex-m.json")
