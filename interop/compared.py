# SPDX-License-Identifier: BSD-3-Clause
"""Compare models of the set with their files, value by value; print a table of what was compared.

usage: compared.py [MODEL...]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter

import torch
from etx_devtools.compare import Report, compare
from etx_exir import to_edge
from etx_schema import DelegateCall, KernelCall, PteFile, Tensor, TensorList
from etx_schema.inspect.reads_writes import effects
from modelset import build
from names import ROWS

MORE = ("chain", "densenet121", "swin_t")
"""Beside the rows of the set: a hundred additions in a row, 121 layers, attention in windows."""

HEADINGS = ("model", "results", "by value", "by operator", "none", "wrong", "largest", "seconds")


def unseen(pte: PteFile, report: Report) -> list[str]:
    """Return the calls that leave tensors and that no check is of, though they ran or could."""
    (plan,) = pte.program.execution_plan
    seen = {check.instruction for call in report.calls for check in call.checks}
    pairs = enumerate(zip(plan.chains[0].instructions, effects(plan), strict=True))
    return [
        f"instruction {number} {effect.op} was not seen"
        for number, (step, effect) in pairs
        if isinstance(step.instr_args, (KernelCall, DelegateCall))
        and number not in seen
        and effect.alias is None
        and any(
            isinstance(plan.values[slot].val, (Tensor, TensorList))
            for slot in (*effect.writes, *effect.updates)
        )
    ]


def row(name: str) -> tuple[list[str], Counter[str], list[str]]:
    """Return a line of the table, why results were not compared, and what is wrong."""
    built = build(name)
    with torch.no_grad():
        program = torch.export.export(
            built.module, built.example, dynamic_shapes=built.dynamic_shapes
        )
    pte = to_edge(program).to_executorch().pte_file
    start = time.perf_counter()
    report = compare(pte, program, built.calls[:2])
    seconds = time.perf_counter() - start
    checks = [check for call in report.calls for check in call.checks]
    compared = Counter(check.by for check in checks if check.made is not None)
    reasons = Counter(check.reason for check in checks if check.made is None)
    wrong = [check for check in checks if check.wrong]
    counts = [len(checks), compared["value"], compared["operator"], sum(reasons.values())]
    cells = [name, *map(str, counts), str(len(wrong)), f"{report.largest:.2g}", f"{seconds:.1f}"]
    said = (list(report.lines()) if wrong else []) + unseen(pte, report)
    return cells, reasons, said


def main(names: list[str]) -> int:
    """Print the table; fail where anything is wrong or was not compared without a reason."""
    warnings.simplefilter("ignore")
    print("| " + " | ".join(HEADINGS) + " |")
    print("| --- |" + " ---: |" * (len(HEADINGS) - 1))
    failed = False
    for name in names or sorted([*ROWS, *MORE]):
        cells, reasons, said = row(name)
        print("| " + " | ".join(cells) + " |", flush=True)
        for reason, count in reasons.items():
            print(f"{name}: {count} not compared: {reason}", file=sys.stderr)
        print(*said, sep="\n", end="", file=sys.stderr)
        failed |= bool(said) or "" in reasons
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
