# SPDX-License-Identifier: BSD-3-Clause
"""The package's version."""

__version__ = "0.1.0"
