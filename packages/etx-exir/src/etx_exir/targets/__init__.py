# SPDX-License-Identifier: BSD-3-Clause
"""The targets that come with the compiler."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

__all__ = ["CARRIED", "DEFAULT", "default_operators", "etx", "executorch"]

_FOLDER = Path(__file__).parent


def etx() -> Path:
    """Return the target of all that etx-runtime with etx-kernels-portable can do."""
    return _FOLDER / "etx.json"


def executorch() -> Path:
    """Return the target of files that run on ETX and on ExecuTorch's wheel alike."""
    return _FOLDER / "executorch.json"


CARRIED = {"etx": etx(), "executorch": executorch()}
DEFAULT = "etx"


@cache
def default_operators() -> frozenset[str]:
    """Return the names of the kernels of target `etx`."""
    return frozenset(json.loads(etx().read_text(encoding="utf-8"))["operators"])
