# SPDX-License-Identifier: BSD-3-Clause
"""One operator for ETX: its kernel, and what the compiler is told of it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["library_path", "target_path"]

HERE = Path(__file__).resolve().parent


def library_path() -> str:
    """Return the path of the plugin."""
    return str(HERE / "soft_clip.so")


def target_path() -> str:
    """Return the path of the file that lists its operator."""
    return str(HERE / "target.json")
