# SPDX-License-Identifier: BSD-3-Clause
"""Run the same tests on ExecuTorch, by pytest: `theirs.py SITE-PACKAGES --json FILE [NAME...]`.

Writes what run.py writes. What the suite marks as a failure of its own, or leaves to its simulator
or other tools, is told from what passes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = ("executorch", "backends", "arm", "test", "ops")
ELSEWHERE = ("Corstone", "model-converter", "VKML", "FVP", "executor_runner")


def key(nodeid: str) -> str:
    """Return a case as run.py names it."""
    file, _, name = nodeid.partition("::")
    label = name if "[" in name else f"{name}[]"
    return f"{Path(file).stem.removeprefix('test_')}.{label}"


class Listener:
    """Keeps what becomes of each test."""

    def __init__(self, path: Path, known: dict[str, str]) -> None:
        self.path, self.found, self.known = path, dict(known), frozenset(known)

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Leave out what is known from another run."""
        again = [item for item in items if key(item.nodeid) in self.known]
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if key(item.nodeid) not in self.known]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that was called, or that ended before."""
        if report.when != "call" and report.outcome == "passed":
            return
        why = ""
        if report.outcome != "passed":
            marked = getattr(report, "wasxfail", "")
            crash = getattr(report.longrepr, "reprcrash", None)
            said = crash.message.partition("\n")[0] if crash else str(report.longrepr).strip()
            text = marked or said.splitlines()[-1]
            left = report.outcome == "skipped" and any(e in str(text) for e in ELSEWHERE)
            left = left or (report.outcome == "skipped" and not marked)
            why = f"{'left out' if left else 'known' if marked else 'fails'}: {text[:300]}"
        self.found[key(report.nodeid)] = why
        self.path.write_text(json.dumps(self.found, indent=1), encoding="utf-8")


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--match", default="", help="only tests with this in their name: tosa_FP")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--resume", action="store_true", help="call only what is not in FILE yet")
    options = parser.parse_intermixed_args()
    known = {}
    if options.resume and options.json.exists():
        known = json.loads(options.json.read_text(encoding="utf-8"))
    folder = options.wheel.joinpath(*FOLDER)
    files = sorted(folder.glob("test_*.py"))
    chosen = [f for f in files if not options.names or f.stem[5:] in options.names]
    tools = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([tools, os.environ.get("PATH", os.defpath)])
    command = ["-q", "-p", "no:cacheprovider", "-W", "ignore", *map(str, chosen)]
    command.append("--continue-on-collection-errors")
    command += ["-k", options.match] if options.match else []
    pytest.main(command, plugins=[Listener(options.json, known)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
