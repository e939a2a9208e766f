# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of ExecuTorch, as they lie in its wheel, on ETX.

Prints how many pass a file, and why the others do not apply; `not_applicable.json` says it for
each test. Exit code 1 if a test fails that is not listed there, or one that is listed passes.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aliases
from running import run_file


@dataclass(frozen=True)
class Suite:
    """Files of tests below the package `root`, and the file that says which do not apply.

    `names` returns what names of ExecuTorch stand for beyond the port.
    """

    root: str
    files: tuple[str, ...]
    listed: Path
    names: Callable[[], Mapping[str, Any]] = dict

    def reasons(self) -> dict[str, str]:
        """Return by test why it does not apply."""
        document = json.loads(self.listed.read_text())
        reasons = document["reasons"]
        return {test: reasons[key] for key, tests in document["tests"].items() for test in tests}


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


def main(suite: Suite, arguments: list[str]) -> int:
    """Run the files and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the site-packages that ExecuTorch lies in")
    parser.add_argument("files", nargs="*", default=suite.files, help="such as emit.test.test_emit")
    parser.add_argument("--json", type=Path, help="write what became of each test to this file")
    options = parser.parse_args(arguments)
    listed = suite.reasons()
    aliases.install(options.wheel, suite.names())
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    results: dict[str, str] = {}
    print("pass fail  n/a")
    for name in options.files:
        begin = time.perf_counter()
        with redirect_stdout(io.StringIO()):
            found = run_file(suite.root, name)
        results |= found
        print(table(name, found, listed, time.perf_counter() - begin))
        print(*judge(found, listed), sep="\n", flush=True)
    gone = [t for t in listed if t not in results and options.files is suite.files]
    wrong = [*judge(results, listed), *(f"{test} does not exist" for test in gone)]
    print(f"{sum(not why for why in results.values())} of {len(results)} pass")
    print(*wrong, sep="\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 1 if wrong else 0
