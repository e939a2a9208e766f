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
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHOW = """
import glob, json, sys, torch
for path in sorted(glob.glob(sys.argv[1] + "/*.samples")):
    for i, row in enumerate(torch.load(path, weights_only=False)):
        keys = ("op", "dtype", "number", "state", "why", "text")
        print(json.dumps([path, i, {key: row.get(key, "") for key in keys}]))
"""
KNOWN = (  # operator, what is said, the reason
    ("as_strided", "differs", "samples are views of larger storage, which no file holds"),
    ("as_strided_copy", "differs", "samples are views of larger storage, which no file holds"),
)


def run(python: str, *command: object) -> subprocess.CompletedProcess[str]:
    """Run one of our scripts there; what it says of warnings is dropped."""
    line = [python, "-W", "ignore", *map(str, command)]
    return subprocess.run(line, cwd=HERE, text=True, stdout=subprocess.PIPE, check=False)


def write(python: str, folder: Path, workers: int, options: list[str]) -> None:
    """Compile in several processes."""
    started = [
        subprocess.Popen(
            [python, "-W", "ignore", "write.py", str(folder), str(i), str(workers), *options],
            cwd=HERE,
        )
        for i in range(workers)
    ]
    codes = [process.wait() for process in started]
    if any(codes):
        raise SystemExit("write.py failed")


def execute(python: str, path: Path) -> dict[int, tuple[str, str]]:
    """Run the samples of a file; one that ends the process is noted, and the rest goes on."""
    found: dict[int, tuple[str, str]] = {}
    first = 0
    while True:
        done = run(python, "execute.py", "--from", first, path)
        last = -1
        for line in done.stdout.splitlines():
            _, last, what, detail = json.loads(line)
            found[last] = (what, detail)
        if done.returncode == 0:
            return found
        if last < first:
            raise SystemExit(f"execute.py failed with {done.returncode}")
        found[last] = ("ended the process", f"exit code {done.returncode}")
        first = last + 1


def reason(row: dict[str, Any], what: str) -> str:
    """Return why it is known that this sample does not run as eager, nothing if it is not."""
    return next((why for op, said, why in KNOWN if (op, said) == (row["op"], what)), "")


def main() -> int:
    """Run all, print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("executorch")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    options, rest = parser.parse_known_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.samples"):
        stale.unlink()
    write(options.host, folder, options.workers, rest)
    rows = {}
    for line in run(options.host, "-c", SHOW, folder).stdout.splitlines():
        path, i, row = json.loads(line)
        rows[path, i] = row
    counts: Counter[str] = Counter(row["state"] for row in rows.values())
    bad = [row for row in rows.values() if row["state"] == "broken"]
    for path in sorted(folder.glob("*.samples")):
        for i, (what, detail) in execute(options.executorch, path).items():
            row = rows[str(path), i]
            known = what != "same" and reason(row, what)
            counts[f"  {what}" + (", known" if known else "")] += 1
            if what != "same" and not known:
                bad.append({**row, "why": f"{what}: {detail}"})
    for row in bad:
        print(f"{row['op']} {row['dtype']} {row['number']}: {row['why']}\n    {row['text']}")
    print(
        f"{len(rows)} samples", *(f"{n:6} {what}" for what, n in sorted(counts.items())), sep="\n"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
