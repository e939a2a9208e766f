# SPDX-License-Identifier: BSD-3-Clause
"""The targets that are there for every compiler; etx-schema carries them."""

from __future__ import annotations

import json
from functools import cache

from etx_schema.targets import etx, executorch
from etx_schema.targets.installed import DEFAULT

__all__ = ["CARRIED", "DEFAULT", "PRECISIONS", "default_operators", "etx", "executorch"]

CARRIED = {"etx": etx(), "executorch": executorch()}
PRECISIONS = ("float32", "bf16")
"""In what weights of float32 are stored: as they are, or in half."""


@cache
def default_operators() -> frozenset[str]:
    """Return the names of the kernels of target `etx`."""
    return frozenset(json.loads(etx().read_text(encoding="utf-8"))["operators"])
