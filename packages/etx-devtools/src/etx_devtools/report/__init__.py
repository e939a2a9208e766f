# SPDX-License-Identifier: BSD-3-Clause
"""A program as one HTML file to look at."""

from etx_devtools.report.data import Measured, document
from etx_devtools.report.page import page

__all__ = ["Measured", "document", "page"]
