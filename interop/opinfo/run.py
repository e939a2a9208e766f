# SPDX-License-Identifier: BSD-3-Clause
"""Compile PyTorch's samples for `executorch`, run them on its runtime, count what happens.

usage: run.py HOST EXECUTORCH FOLDER [--workers N] [what write.py takes]

HOST is a Python with etx-exir, EXECUTORCH one with ExecuTorch's wheel. What is accepted must run
there and give what eager gives, or stand in KNOWN: exit 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DIED = "ended the process"
KNOWN = (  # operator, what is said, the reason
    ("as_strided", "differs", "samples are views of larger storage, which no file holds"),
    ("as_strided_copy", "differs", "samples are views of larger storage, which no file holds"),
)


def run(*command: object) -> dict[int, list[tuple[str, Any]]]:
    """Run one of our scripts; return what it says of each sample.

    One that ends the process is noted, and the rest goes on in another.
    """
    said: dict[int, list[tuple[str, Any]]] = {}
    last = -1
    while True:
        line = [*map(str, command), "--after", str(last)]
        with subprocess.Popen(line, cwd=HERE, text=True, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            before = last
            for text in process.stdout:
                last, what, detail = json.loads(text)
                said.setdefault(last, []).append((what, detail))
        if process.returncode == 0:
            return said
        if last == before:
            raise SystemExit(f"{' '.join(line)} failed with {process.returncode}")
        if said[last][-1][0] == "begun":
            said[last].append((DIED, f"exit code {process.returncode}"))


def part(options: argparse.Namespace, rest: list[str], number: int) -> list[dict[str, Any]]:
    """Compile and execute a part of the samples; return each with what happened to it."""
    folder, warnings = options.folder.resolve(), ("-W", "ignore")
    write = ("write.py", folder, number, options.workers, *rest)
    compiled = run(options.host, *warnings, *write)
    executed = run(options.executorch, *warnings, "execute.py", folder / f"{number}.samples")
    found = []
    for i, ((_, row), (state, why)) in compiled.items():
        state = "broken" if state == DIED else state
        what, detail = executed[i][-1] if i in executed else ("", "")
        found.append({**row, "state": state, "why": why, "what": what, "detail": detail})
    return found


def reason(row: dict[str, Any]) -> str:
    """Return why it is known that this sample does not run as eager, nothing if it is not."""
    return next((why for op, said, why in KNOWN if (op, said) == (row["op"], row["what"])), "")


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("executorch")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    options, rest = parser.parse_known_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for stale in options.folder.glob("*.samples"):
        stale.unlink()
    with ThreadPoolExecutor(options.workers) as pool:
        parts = pool.map(lambda i: part(options, rest, i), range(options.workers))
        rows = [row for found in parts for row in found]
    counts: Counter[str] = Counter(row["state"] for row in rows)
    bad = []
    for row in rows:
        known = reason(row)
        counts[f"  {row['what']}" + (", known" if known else "")] += bool(row["what"])
        if row["state"] == "broken" or (row["what"] not in ("", "same") and not known):
            bad.append(row)
    (options.folder / "found.json").write_text(json.dumps(rows, indent=1))
    for row in bad:
        why = f"{row['what']}: {row['detail']}" if row["what"] else row["why"]
        print(f"{row['op']} {row['dtype']} {row['number']}: {why}\n    {row['text']}")
    print(
        f"{len(rows)} samples",
        *(f"{n:6} {what}" for what, n in sorted(counts.items()) if n),
        sep="\n",
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
