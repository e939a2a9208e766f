# SPDX-License-Identifier: BSD-3-Clause
"""Tests in a browser are collected where there is one."""

import gc

from browser import BROWSER

collect_ignore = [] if BROWSER else ["test_report_in_browser.py"]


def pytest_collection_finish():
    gc.freeze()  # torch's modules: the collector walks them again and again
