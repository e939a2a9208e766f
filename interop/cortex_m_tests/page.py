# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/cortex-m-tests.md: `page.py OURS.json THEIRS.json`, as run.py writes them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from run import Reasons

PAGE = Path(__file__).parents[2] / "docs" / "cortex-m-tests.md"
HEAD = """# ExecuTorch's tests of Cortex-M

`python3 noxfile.py -s cortex-m-tests -- --write` runs the tests below ExecuTorch {version}'s
`backends/cortex_m/test`, as they lie in its wheel, on ETX's quantizer and passes and on ExecuTorch,
and writes this page. A case of a test counts as one. Those named `test_implementation_*` and
`*_fvp` run firmware in Arm's simulator and are left out; the same kernels run in QEMU in
`-s machines`. `interop/cortex_m_tests/not_applicable.json` has the reason of each that does not
pass on ETX; one that fails and is not listed, or is listed and passes, fails the command. A file
that cannot be imported counts as one.

| file | tests | pass on ETX | pass on ExecuTorch |
| --- | ---: | ---: | ---: |
"""
WHY = """
Why the others do not:

| tests | reason |
| ---: | --- |
"""


def page(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """Return the page's text."""
    total, passed, also = Counter[str](), Counter[str](), Counter[str]()
    for test, why in ours.items():
        file = test.partition("::")[0]
        total[file] += 1
        passed[file] += not why
        also[file] += theirs.get(test) == ""
    known = {test.partition("::")[0] for test in theirs}
    counts = {f: str(also[f]) if f in known else "" for f in total}
    rows = [f"| `{f}` | {total[f]} | {passed[f]} | {counts[f]} |" for f in sorted(total)]
    rows.append(f"| together | {total.total()} | {passed.total()} | {also.total()} |")
    listed = Reasons()
    others = Counter(listed.get(test) or "fails" for test, why in ours.items() if why)
    why = [f"| {count} | {reason} |" for reason, count in others.most_common()]
    return HEAD.format(version="1.5.1") + "\n".join(rows) + "\n" + WHY + "\n".join(why) + "\n"


if __name__ == "__main__":
    found = [json.loads(Path(path).read_text()) for path in sys.argv[1:]]
    PAGE.write_text(page(*found), encoding="utf-8")
