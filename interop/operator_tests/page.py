# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/operator-tests.md: `page.py OURS.json THEIRS.json`, as run.py writes them.

Exit code 1 where a function does not pass on ETX and reasons.json does not say why, or it passes
and is listed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "operator-tests.md"
HEAD = """# ExecuTorch's operator suite

`python3 noxfile.py -s operator-tests -- --write` calls the functions of ExecuTorch 1.5.1's
`backends/test/suite/operators`, as they lie in its wheel, on ETX and on ExecuTorch, without a
delegate, and writes this page. One harness lowers each model, runs it on the function's own inputs
and compares with eager in float32, to {bound} of a value; ExecuTorch's own harness allows 0.1.
`interop/operator_tests/reasons.json` says why a function does not pass on ETX; one that is not
listed, or is listed and passes, fails the command. What has no number on one side was not run when
the page was written.

| | functions | pass | skip themselves | do not pass |
| --- | ---: | ---: | ---: | ---: |
"""
DIFFERENT = """
Where the two differ (ExecuTorch's own harness skips what its portable kernels lack; here that does
not pass), functions of one file in a row where the same became of them:

| functions | ETX | ExecuTorch |
| --- | --- | --- |
"""
SKIPPED = "SkipTest"


def kind(why: str) -> str:
    """Return what became of a function in a word."""
    if not why:
        return "passes"
    return "skipped" if why.startswith(SKIPPED) else "fails"


def row(name: str, found: dict[str, str]) -> str:
    counts = Counter(map(kind, found.values()))
    cells = (len(found), counts["passes"], counts["skipped"], counts["fails"])
    return f"| {name} | {' | '.join(map(str, cells))} |"


def said(why: str, reason: str | None = None) -> str:
    """Return a cell: a reason, or the beginning of what was raised."""
    text = reason or why or "passes"
    return text[:160].replace("|", "\\|").replace("\n", " ")


def called(names: list[str]) -> str:
    """Return a function's name, or of several the first and how many there are."""
    return f"`{names[0]}`" + (f" and {len(names) - 1} more" if names[1:] else "")


def page(ours: dict[str, str], theirs: dict[str, str], reasons: dict[str, str]) -> str:
    """Return the page's text."""
    rows = [row("ETX", ours), row("ExecuTorch", theirs)]
    alike: dict[tuple[str, str, str], list[str]] = {}
    for name, why in ours.items():
        if name in theirs and kind(why) != kind(theirs[name]):
            key = (name.partition(".")[0], said(why, reasons.get(name)), said(theirs[name]))
            alike.setdefault(key, []).append(name)
    apart = [f"| {called(names)} | {a} | {b} |" for (_, a, b), names in alike.items()]
    both = [
        name for name, why in ours.items() if kind(why) == kind(theirs.get(name, "")) == "fails"
    ]
    text = HEAD.format(bound="0.001") + "\n".join(rows) + "\n"
    text += DIFFERENT + "\n".join(apart) + "\n" if apart else ""
    if both:
        listed = "\n".join(f"| `{name}` | {said(ours[name], reasons.get(name))} |" for name in both)
        text += f"\nNeither passes:\n\n| function | reason |\n| --- | --- |\n{listed}\n"
    return text


def judge(ours: dict[str, str], reasons: dict[str, str]) -> list[str]:
    """Return what is not as it is listed."""
    failed = {name for name, why in ours.items() if kind(why) == "fails"}
    unlisted = [f"{name} fails: {ours[name]}" for name in sorted(failed - set(reasons))]
    listed = [f"{name} passes; remove it from reasons.json" for name in set(reasons) - failed]
    return [*unlisted, *sorted(listed)]


def main(ours: str, theirs: str) -> int:
    """Write the page."""
    found, peer = (json.loads(Path(name).read_text(encoding="utf-8")) for name in (ours, theirs))
    reasons = json.loads((HERE / "reasons.json").read_text(encoding="utf-8"))
    PAGE.write_text(page(found, peer, reasons), encoding="utf-8")
    wrong = judge(found, reasons)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
