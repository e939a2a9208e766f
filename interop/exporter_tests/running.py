# SPDX-License-Identifier: BSD-3-Clause
"""Runs one file of unittest's tests; a file that cannot be imported fails in each of its tests."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import unittest
from pathlib import Path

import torch


class Outcome(unittest.TestResult):
    """What became of each test: an empty string, or why it did not pass."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        self.found: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        torch.manual_seed(0)  # some bounds hold for most random inputs only, on ExecuTorch, too
        self.found[self._name(test)] = ""

    def addError(self, test, error) -> None:
        self.found[self._name(test)] = f"{error[0].__name__}: {error[1]}"

    addFailure = addError

    def addSkip(self, test, reason: str) -> None:
        self.found[self._name(test)] = f"skipped: {reason}"

    def _name(self, test: unittest.TestCase) -> str:
        return test.id().removeprefix(self.root)

    def addSubTest(self, test, subtest, error) -> None:
        if error is not None:
            self.addError(test, error)


def run_file(root: str, name: str) -> dict[str, str]:
    """Run one file of tests."""
    try:
        importlib.import_module(root + name)
    except ImportError as error:
        return {f"{name}.{test}": f"ImportError: {error}" for test in tests_of(root + name)}
    outcome = Outcome(root)
    unittest.defaultTestLoader.loadTestsFromName(root + name).run(outcome)
    return outcome.found


def tests_of(module: str) -> list[str]:
    """Return the tests that stand in a file, `Class.test`."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    tree = ast.parse(Path(spec.origin).read_text())
    return [
        f"{each.name}.{inner.name}"
        for each in tree.body
        if isinstance(each, ast.ClassDef)
        for inner in each.body
        if isinstance(inner, ast.FunctionDef) and inner.name.startswith("test_")
    ]
