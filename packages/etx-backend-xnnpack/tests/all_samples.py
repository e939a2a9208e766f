#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run all of PyTorch's samples of float32 through the partitioner; print what became of them.

One line an operator: its forms, how many became delegates whole or in part, how many XNNPACK
takes nothing of, how many ETX and torch refuse, how many differ from eager; then the lowerings
that no sample reaches. Exit code 1 where one differs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

from etx_backend_xnnpack.nodes import TABLE
from opinfo import OUTCOMES, forms, infos, reaches, run

FAILED = "differs"


def main() -> int:
    """Run the samples and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, help="take so many samples of each operator")
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--part", default="0/1", help="such as 1/4: every fourth, from the second")
    parser.add_argument("--page", type=Path, help="write the table to this file")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    warnings.simplefilter("ignore")
    chosen = [info for info in infos() if options.only in info.name and reaches(info)]
    lines = ["| operator | " + " | ".join((*OUTCOMES, FAILED)) + " |"]
    lines.append("| --- |" + " ---: |" * (len(OUTCOMES) + 1))
    total: Counter[str] = Counter()
    reached: set[str] = set()
    print(*lines, sep="\n", flush=True)
    for info in chosen[part::parts]:
        counts: Counter[str] = Counter()
        for form in forms(info, options.most):
            try:
                outcome = run(form)
            except Exception as error:
                counts[FAILED] += 1
                print(f"{form}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            counts[outcome.kind] += 1
            reached |= outcome.operators
        name = ".".join(filter(None, (info.name, info.variant_test_name)))
        lines.append(line(name, counts))
        print(lines[-1], flush=True)
        total += counts
    lines.append(line("all", total))
    print(lines[-1])
    if options.page:
        options.page.write_text("\n".join(lines) + "\n")
    whole = parts == 1 and not options.only
    missed = sorted(str(op) for op in TABLE if whole and str(op) not in reached)
    print(*(f"no sample reaches {name}" for name in missed), sep="\n")
    return 1 if total[FAILED] else 0


def line(name: str, counts: Counter[str]) -> str:
    """Return a line of the table."""
    return f"| {name} | " + " | ".join(str(counts[kind]) for kind in (*OUTCOMES, FAILED)) + " |"


if __name__ == "__main__":
    sys.exit(main())
