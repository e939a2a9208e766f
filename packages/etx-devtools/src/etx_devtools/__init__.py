# SPDX-License-Identifier: BSD-3-Clause
"""Look into programs: where their bytes are."""

from etx_devtools._version import __version__
from etx_devtools.size import VIEWS, Row, SizeReport, sizes

__all__ = ["VIEWS", "Row", "SizeReport", "__version__", "sizes"]
