# SPDX-License-Identifier: BSD-3-Clause
"""A program and its test cases in one file: made here, verified on any device."""

from etx_devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from etx_devtools.bundled_program.core import BundledProgram
from etx_devtools.bundled_program.verify import Tolerance, Verdict, verify

__all__ = [
    "BundledProgram",
    "MethodTestCase",
    "MethodTestSuite",
    "Tolerance",
    "Verdict",
    "verify",
]
