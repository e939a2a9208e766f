# SPDX-License-Identifier: BSD-3-Clause
"""The targets that the format's package carries, for hosts and devices that have no others."""

from __future__ import annotations

from pathlib import Path

__all__ = ["etx", "executorch"]

_FOLDER = Path(__file__).parent


def etx() -> Path:
    """Return the target of all that etx-runtime with etx-kernels-portable can do."""
    return _FOLDER / "etx.json"


def executorch() -> Path:
    """Return the target of files that run on ETX and on ExecuTorch's wheel alike."""
    return _FOLDER / "executorch.json"
