# SPDX-License-Identifier: BSD-3-Clause
"""``python -m differential [--calls N] [--seed S] [--only S/I] [--page FILE]``, in tests/."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parents[1] / "support"))

from differential.calls import draw
from differential.known import explain
from differential.page import page
from differential.run import sweep, work


def once(call_name: str, kernel: str | None) -> int:
    seed, index = map(int, call_name.split("/"))
    call = draw(seed, index, kernel)
    print(call.text(), flush=True)
    call.run(lambda who: print(f"{who} …", flush=True))
    row = explain(call)
    print(call.outcome, call.detail, f"({row.name}: {row.reason})" if row else "")
    print("kernel:", *call.results, "eager:", *call.expected, sep="\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m differential", description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000, help="how many (default 50000)")
    parser.add_argument("--seed", type=int, default=1, help="what decides the arguments")
    parser.add_argument("--only", metavar="SEED/INDEX", help="make one call and show all of it")
    parser.add_argument("--kernel", metavar="NAME", help="instead of the one whose turn it is")
    parser.add_argument("--page", type=Path, help="where to write the tables")
    parser.add_argument("--work", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work, options.kernel)
        return 0
    if options.only:
        return once(options.only, options.kernel)
    summary = sweep(options.seed, options.calls, options.kernel)
    print(f"{summary.total} calls, seed {summary.seed}: {dict(summary.outcomes)}")
    print("\n".join(summary.failures()))
    if options.page is not None:
        options.page.write_text(page(summary), encoding="utf-8")
    return 1 if summary.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
