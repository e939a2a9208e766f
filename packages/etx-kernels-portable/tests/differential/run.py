# SPDX-License-Identifier: BSD-3-Clause
"""Makes many calls in processes of their own, for some end in eager, and sums them up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from harness import RECORDER

from differential.calls import DRAWN, Call, draw
from differential.known import ROWS, explain
from differential.registry import UNDRAWN

TESTS = Path(__file__).parents[1]
DIFFERENT = ("differs", "strict", "aborted", "crashed")


@dataclass(frozen=True)
class Report:
    """What came of one call; `row` names the reason of a difference that is known."""

    index: int
    kernel: str
    outcome: str
    row: str = ""
    detail: str = ""
    call: str = ""

    @property
    def unexplained(self) -> bool:
        return self.outcome in DIFFERENT and not self.row


def report(index: int, call: Call) -> Report:
    row = explain(call) if call.outcome in DIFFERENT else None
    shown = (call.detail, call.text()) if call.outcome in DIFFERENT else ("", "")
    return Report(index, call.kernel.name, call.outcome, row.name if row else "", *shown)


def work(seed: int, begin: int, end: int, name: str | None = None) -> None:
    """Print who computes as it begins, and each report, a line each."""
    torch.set_num_threads(1)
    RECORDER.record = lambda *_: None  # type: ignore[method-assign]
    for index in range(begin, end):
        call = draw(seed, index, name)
        call.run(lambda who, i=index: print(json.dumps([i, who]), flush=True))
        print(json.dumps(vars(report(index, call))), flush=True)


def calls(seed: int, begin: int, end: int, name: str | None = None) -> Iterator[Report]:
    """Yield the reports of these calls; a process that ends is started again behind its call."""
    while begin < end:
        command = [sys.executable, "-m", "differential", "--work", *map(str, (seed, begin, end))]
        if name is not None:
            command += ["--kernel", name]
        who, index = "", begin
        with tempfile.TemporaryFile("w+") as printed:
            with subprocess.Popen(
                command, cwd=TESTS, stdout=subprocess.PIPE, stderr=printed, text=True
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    found = json.loads(line)
                    if isinstance(found, list):
                        index, who = found
                    else:
                        yield Report(**found)
            if process.returncode == 0:
                return
            if process.returncode > 0 or not who:
                printed.seek(0)
                raise RuntimeError(f"call {seed}/{index}:\n{printed.read()[-3000:]}")
        call = draw(seed, index, name)
        call.outcome = "aborted" if who == "eager" else "crashed"
        call.detail = f"signal {-process.returncode}"
        yield report(index, call)
        begin = index + 1


@dataclass
class Summary:
    """Counts of many reports."""

    seed: int
    outcomes: Counter[str]
    rows: Counter[str]
    unexplained: list[Report]

    @property
    def total(self) -> int:
        return self.outcomes.total()

    def failures(self) -> list[str]:
        """Differences without a row, and rows that a large sweep no longer needs."""
        found = [f"{self.seed}/{r.index} {r.call}: {r.detail}" for r in self.unexplained]
        if self.total >= 50_000:
            for row in ROWS:
                is_frequent = row.example is None and not row.by_chance
                if is_frequent and self.rows[row.name] < row.least:
                    found.append(f"row {row.name!r}: {self.rows[row.name]} calls differ so")
        return found


def sweep(seed: int, count: int, name: str | None = None) -> Summary:
    """Make `count` calls, all of kernel `name` where it is given, and count what came of them."""
    summary = Summary(seed, Counter(), Counter(), [])
    for found in calls(seed, 0, count, name):
        summary.outcomes[found.outcome] += 1
        if found.row:
            summary.rows[found.row] += 1
        if found.unexplained:
            summary.unexplained.append(found)
    return summary


def drawn_kernels() -> tuple[int, dict[str, str]]:
    """How many kernels are drawn, and those that are not, with their reasons."""
    return len(DRAWN), UNDRAWN
