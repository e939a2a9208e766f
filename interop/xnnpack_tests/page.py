# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/xnnpack-tests.md: `page.py OURS.json THEIRS.json`, as run.py and theirs.py write."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "xnnpack-tests.md"
HEAD = """# ExecuTorch's tests of XNNPACK

`python3 noxfile.py -s xnnpack-tests -- --write` runs the tests below ExecuTorch {version}'s
`backends/xnnpack/test`, as they lie in its wheel, on ETX and on ExecuTorch in one environment each
of the same packages, and writes this page. torchvision's models have seeded weights instead of
trained ones. `interop/xnnpack_tests/not_applicable.json` has the reason of each test that does not
pass on ETX; one that fails and is not listed, or is listed and passes, fails the command. What is
not in the table, or has no number, was not run when the page was written.

| folder | tests | pass on ETX | pass on ExecuTorch |
| --- | ---: | ---: | ---: |
"""
WHY = """
Why the others do not:

| tests | reason |
| ---: | --- |
"""


def folder(test: str) -> str:
    """Return the folder that a test lies in."""
    first = test.partition(".")[0]
    return "(top level)" if first.startswith("test_") else first


def page(ours: dict[str, str], theirs: dict[str, str], reasons: dict[str, str]) -> str:
    """Return the page's text."""
    total, passed, also = Counter[str](), Counter[str](), Counter[str]()
    for test, why in ours.items():
        total[folder(test)] += 1
        passed[folder(test)] += not why
        also[folder(test)] += theirs.get(test) == ""
    known = {folder(test) for test in theirs}
    counts = {each: str(also[each]) if each in known else "" for each in total}
    rows = [f"| `{each}` | {total[each]} | {passed[each]} | {counts[each]} |" for each in total]
    others = Counter(reasons.get(test, "fails") for test, why in ours.items() if why)
    why = [f"| {count} | {reason} |" for reason, count in others.most_common()]
    return HEAD.format(version="1.5.1") + "\n".join(rows) + "\n" + WHY + "\n".join(why) + "\n"


def main(ours: str, theirs: str) -> None:
    """Write the page."""
    listed = json.loads((HERE / "not_applicable.json").read_text())
    reasons = {t: listed["reasons"][key] for key, tests in listed["tests"].items() for t in tests}
    text = page(json.loads(Path(ours).read_text()), json.loads(Path(theirs).read_text()), reasons)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
