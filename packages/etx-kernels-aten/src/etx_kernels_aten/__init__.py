# SPDX-License-Identifier: BSD-3-Clause
"""torch's own operators as kernels of ETX: ``etx_runtime.load(path, kernels="aten")``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from etx_kernels_aten._version import __version__

if TYPE_CHECKING:
    from etx_kernels_aten.module import Module

__all__ = ["Module", "__version__", "include_path"]


def include_path() -> str:
    """Return the folder of ``etx/aten.h``."""
    return os.path.join(os.path.dirname(os.path.realpath(__file__)), "include")


def __getattr__(name: str) -> Any:
    """Import torch with the first use of `Module`: targets are read without it."""
    if name != "Module":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from etx_kernels_aten.module import Module

    return Module
