# SPDX-License-Identifier: BSD-3-Clause
"""Look into programs: where their bytes are, whether they return what they should.

Names are imported at their first use: most of a command's start would be NumPy's.
"""

from typing import TYPE_CHECKING, Any

from etx_devtools._version import __version__

if TYPE_CHECKING:
    from etx_devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from etx_devtools.bundled_program.core import BundledProgram
    from etx_devtools.size import VIEWS, Row, SizeReport, sizes

__all__ = [
    "VIEWS",
    "BundledProgram",
    "MethodTestCase",
    "MethodTestSuite",
    "Row",
    "SizeReport",
    "__version__",
    "sizes",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'etx_devtools' has no attribute '{name}'")
    is_bundled = name in ("BundledProgram", "MethodTestCase", "MethodTestSuite")
    module = import_module(f"etx_devtools.{'bundled_program' if is_bundled else 'size'}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
