# SPDX-License-Identifier: BSD-3-Clause
"""Draw graphs of the table by seed, run them and print counts: `table_sweep.py [--graphs N]`."""

from __future__ import annotations

import argparse
import logging
import random
from collections import Counter

from etx_exir.target.check import load_target
from promise import SEED
from table_graphs import drawn_graph
from table_runs import RIGHT, Outcome, outcome


def drawn_outcome(number: int, seed: int = SEED) -> tuple[Outcome, str]:
    """Return what became of one graph, and the graph in words."""
    graph = drawn_graph(random.Random(f"{seed} {number}"))
    return outcome(graph), graph.described()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    kinds: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    reached: set[str] = set()
    for number in range(options.first, options.first + options.graphs):
        found, words = drawn_outcome(number, options.seed)
        kinds[found.kind] += 1
        reached.update(found.kernels)
        if found.kind not in ("ran", "rounded"):
            reasons[found.kind, summary(found)] += 1
        if found.kind not in RIGHT:
            print(f"--- {options.seed} {number}: {found.kind}: {found.reason}\n{words}", flush=True)
        if number % 100 == 99:
            print(number + 1, dict(kinds), flush=True)
    report(kinds, reasons, reached)
    return any(kind not in RIGHT for kind in kinds)


def summary(found: Outcome) -> str:
    lines = [line.strip() for line in found.reason.splitlines() if line.strip()]
    return lines[1 if found.kind == "refused" and len(lines) > 1 else 0][:140]


def report(kinds: Counter[str], reasons: Counter[tuple[str, str]], reached: set[str]) -> None:
    rows = set(load_target("etx").operators)
    print(dict(kinds))
    for (kind, reason), count in reasons.most_common():
        print(f"{count:6} {kind}: {reason}")
    print(f"{len(reached & rows)} of {len(rows)} rows of the table reached; not:")
    print(*sorted(rows - reached), sep="\n")


if __name__ == "__main__":
    raise SystemExit(main())
