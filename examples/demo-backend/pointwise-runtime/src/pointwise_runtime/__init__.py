# SPDX-License-Identifier: BSD-3-Clause
"""Chains of pointwise operators as one delegate: the half for the device."""

from __future__ import annotations

from pathlib import Path

from pointwise_runtime._version import __version__

__all__ = ["__version__", "library_path"]


def library_path() -> str:
    """Return the path of the plugin."""
    return str(Path(__file__).resolve().parent / "pointwise_runtime.so")
