# SPDX-License-Identifier: BSD-3-Clause
"""Run ExecuTorch's tests of Cortex-M: `run.py SITE-PACKAGES --json FILE [--peer] [FILE...]`.

On ETX, or with `--peer`, where it is installed, on ExecuTorch. Tests that need Arm's simulator are
left out by name. Without `--peer`, exit code 1 if a test fails that `not_applicable.json` does not
list, or one that is listed passes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[1:1] = [str(HERE.parent / name) for name in ("exporter_tests", "xnnpack_tests")]

from files import use_seeded_weights  # noqa: E402
from names import names, stand_in  # noqa: E402

ROOT = "executorch/backends/cortex_m/test"
NEED_SIMULATOR = ("*::test_implementation_*", "*_fvp", "*_fvp[[]*")


class Recorder:
    """What became of each test: an empty string, or why it did not pass."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.found: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what needs the simulator."""
        items[:] = [i for i in items if not matches(i.nodeid, NEED_SIMULATOR)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self.found[self._name(report.nodeid)] = _last_line(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test."""
        name = self._name(report.nodeid)
        if report.when == "call" or not report.passed:
            skipped = "fails as expected" if hasattr(report, "wasxfail") else "skipped"
            why = skipped if report.skipped else "" if report.passed else _last_line(report)
            self.found[name] = why
            self.output.write_text(json.dumps(self.found, indent=1), encoding="utf-8")

    def _name(self, nodeid: str) -> str:
        return nodeid.partition(f"{ROOT}/")[2] or nodeid


def _last_line(report: pytest.CollectReport | pytest.TestReport) -> str:
    lines = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
    return (lines or ["?"])[0].removeprefix("E").strip()[:300]


def matches(test: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a test has one of these names."""
    return any(fnmatchcase(test, pattern) for pattern in patterns)


class Reasons:
    """Why tests do not apply, by their names or, where none of it does, that of their file."""

    def __init__(self) -> None:
        listed = json.loads((HERE / "not_applicable.json").read_text())
        self.words = listed["reasons"]
        self.keys = {test: key for key, tests in listed["tests"].items() for test in tests}

    def get(self, test: str) -> str | None:
        """Return the reason of a test, or None."""
        key = self.keys.get(test) or self.keys.get(test.partition("::")[0])
        return self.words[key] if key else None


def judge(found: dict[str, str]) -> list[str]:
    """Return what is not as it should be."""
    listed = Reasons()
    wrong = []
    for test, why in found.items():
        if why and listed.get(test) is None:
            wrong.append(f"{test} fails: {why}")
        elif not why and listed.get(test) is not None:
            wrong.append(f"{test} passes; remove it from not_applicable.json")
    return wrong


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="the site-packages that ExecuTorch lies in")
    parser.add_argument("files", nargs="*", help="such as ops/test_add.py")
    parser.add_argument("--peer", action="store_true", help="run on ExecuTorch itself")
    parser.add_argument("--json", type=Path, required=True, help="file to write")
    options = parser.parse_intermixed_args()
    if not options.peer:
        stand_in()
        aliases = importlib.import_module("aliases")
        aliases.install(options.wheel, names(), (*aliases.TESTS, "examples"))
    use_seeded_weights()
    root = options.wheel / ROOT
    files = options.files or sorted(str(f.relative_to(root)) for f in root.rglob("test_*.py"))
    recorder = Recorder(options.json)
    words = (
        "-q",
        "--continue-on-collection-errors",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-W",
        "ignore",
        "--no-header",
    )
    pytest.main([*words, f"--rootdir={options.wheel}", *(str(root / f) for f in files)], [recorder])
    options.json.write_text(json.dumps(recorder.found, indent=1), encoding="utf-8")
    passed = Counter(not why for why in recorder.found.values())[True]
    print(f"{passed} of {len(recorder.found)} pass")
    wrong = [] if options.peer else judge(recorder.found)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
