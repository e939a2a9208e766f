# SPDX-License-Identifier: BSD-3-Clause
"""Where a program departs from eager PyTorch: `etx compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from etx_devtools.compare.checks import Check, Comparison
    from etx_devtools.compare.files import compare
    from etx_devtools.compare.report import Report

__all__ = ["Check", "Comparison", "Report", "compare"]


def __getattr__(name: str) -> Any:
    """Import torch with the first use: the command is registered without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    modules = {"compare": "files", "Report": "report"}
    module = import_module(f"{__name__}.{modules.get(name, 'checks')}")
    return getattr(module, name)
