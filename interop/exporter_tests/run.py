# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's exporter tests, as they lie in its wheel, on ETX: `run.py SITE-PACKAGES`.

Prints how many pass a file, and why the others do not apply; `not_applicable.json` says it for
each test. Exit code 1 if a test fails that is not listed there, or one that is listed passes.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import sys
import time
import unittest
import warnings
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import aliases

HERE = Path(__file__).parent
ROOT = "executorch.exir."
FILES = (
    "emit.test.test_emit",
    "tests.test_memory_planning",
    "backend.test.test_backend_with_named_data_map",
    "backend.test.test_backends_lifted",
    "backend.test.test_compatibility",
    "backend.test.test_debug_handle_map",
    "backend.test.test_delegate_map_builder",
    "backend.test.test_graph_partition",
    "backend.test.test_group_partitioner",
    "backend.test.test_lowered_backend_module",
    "backend.test.test_partitioner",
    "backend.test.test_passes",
    "backend.test.test_to_backend_multi_method",
    "backend.test.test_utils",
    "_serialize.test.test_cord",
    "_serialize.test.test_flatbuffer",
    "_serialize.test.test_flatbuffer_program",
    "_serialize.test.test_named_data_store",
    "_serialize.test.test_program",
    "_serialize.test.test_ptn",
    "_serialize.test.test_serialize",
    "program.test.test_program",
    "tests.test_delegate",
    "tests.test_dynamic_shape_propagation",
    "tests.test_remove_view_copy",
)


class Outcome(unittest.TestResult):
    """What became of each test: an empty string, or why it did not pass."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.found[_name(test)] = ""

    def addError(self, test, error) -> None:
        self.found[_name(test)] = f"{error[0].__name__}: {error[1]}"

    addFailure = addError

    def addSkip(self, test, reason: str) -> None:
        self.found[_name(test)] = f"skipped: {reason}"

    def addSubTest(self, test, subtest, error) -> None:
        if error is not None:
            self.addError(test, error)


def _name(test: unittest.TestCase) -> str:
    return test.id().removeprefix(ROOT)


def run_file(name: str) -> dict[str, str]:
    """Run one file of tests."""
    outcome = Outcome()
    unittest.defaultTestLoader.loadTestsFromName(ROOT + name).run(outcome)
    return outcome.found


def judge(found: dict[str, str], listed: dict[str, str]) -> list[str]:
    """Return what is not as it should be: failures not listed, and listed tests that pass."""
    wrong = []
    for test, why in found.items():
        if why and test not in listed:
            wrong.append(f"{test} fails: {why.splitlines()[0][:300]}")
        elif not why and test in listed:
            wrong.append(f"{test} passes; remove it from not_applicable.json")
    return wrong


def table(name: str, found: dict[str, str], listed: dict[str, str], seconds: float) -> str:
    """Return a line of counts, and one a reason."""
    apart = Counter(listed[test] for test, why in found.items() if why and test in listed)
    passed = sum(not why for why in found.values())
    failed = len(found) - passed - apart.total()
    head = f"{passed:4d} {failed:4d} {apart.total():4d}  {name} ({seconds:.0f} s)"
    return "\n".join([head, *(f"{count:20d} {reason}" for reason, count in apart.most_common())])


def main(arguments: list[str]) -> int:
    """Run the files and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the site-packages that ExecuTorch lies in")
    parser.add_argument("files", nargs="*", default=FILES, help="such as emit.test.test_emit")
    parser.add_argument("--json", type=Path, help="write what became of each test to this file")
    options = parser.parse_args(arguments)
    document = json.loads((HERE / "not_applicable.json").read_text())
    reasons = document["reasons"]
    listed = {test: reasons[key] for key, tests in document["tests"].items() for test in tests}
    aliases.install(options.wheel)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    results: dict[str, str] = {}
    print("pass fail  n/a")
    for name in options.files:
        begin = time.perf_counter()
        with redirect_stdout(io.StringIO()):
            found = run_file(name)
        results |= found
        print(table(name, found, listed, time.perf_counter() - begin), flush=True)
    gone = [t for t in listed if t not in results and options.files is FILES]
    wrong = [*judge(results, listed), *(f"{test} does not exist" for test in gone)]
    print(f"{sum(not why for why in results.values())} of {len(results)} pass")
    print(*wrong, sep="\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
