# SPDX-License-Identifier: BSD-3-Clause
"""The version of this package."""

__version__ = "0.1.0"
