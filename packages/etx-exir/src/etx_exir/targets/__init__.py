# SPDX-License-Identifier: BSD-3-Clause
"""The targets that come with the compiler."""

from __future__ import annotations

from pathlib import Path


def portable() -> Path:
    """Return the target of files that run on ETX and on ExecuTorch's wheel alike."""
    return Path(__file__).parent / "portable.json"
