# SPDX-License-Identifier: BSD-3-Clause
"""Look into programs: where their bytes are, whether they return what they should."""

from etx_devtools._version import __version__
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
