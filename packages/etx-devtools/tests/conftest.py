# SPDX-License-Identifier: BSD-3-Clause
"""Tests in a browser are collected where there is one."""

from browser import BROWSER

collect_ignore = [] if BROWSER else ["test_report_in_browser.py"]
