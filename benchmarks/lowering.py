# SPDX-License-Identifier: BSD-3-Clause
"""How long lowering takes with ETX and with ExecuTorch's wheel, and how much memory it needs.

Every round lowers each model once with both, in alternating order, one process at a time.
`rest` is the time without torch's own ``run_decompositions``. Ratios, ETX's part of ExecuTorch's
time, are formed within a round; the table shows their medians, its last line geometric means.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = ("etx", "executorch")
EXTRA = ("swin_t", "densenet121")
HEAD = (
    "| model | all, s | ratio | rest, s | ratio | grown, MB | weights, MB |\n"
    "| --- | --- | --- | --- | --- | --- | --- |\n"
)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True, help="python with etx-exir")
    parser.add_argument("--device", help="accepted for the session's sake, not used")
    parser.add_argument("--executorch", required=True, help="python with executorch")
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".build" / "bench-lowering")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("models", nargs="*", help="all of the set unless given")
    return parser.parse_args()


def lower(python: str, peer: str, model: str, folder: Path) -> dict[str, float]:
    """Lower one model in a fresh process."""
    path = folder / f"{model}.{peer}.pte"
    command = [python, "-W", "ignore", HERE / "lower_once.py", peer, model, path]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    path.unlink()
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    answer["rest"] = answer["seconds"] - answer["decompose"]
    return answer


def ratio(result: dict[str, list[dict[str, float]]], key: str) -> float:
    """Median over rounds of ETX's time divided by ExecuTorch's."""
    pairs = zip(result["etx"], result["executorch"], strict=True)
    return statistics.median(ours[key] / theirs[key] for ours, theirs in pairs)


def row(model: str, result: dict[str, list[dict[str, float]]]) -> str:
    """Format one line of the table."""

    def pair(key: str, digits: int) -> str:
        medians = (statistics.median(answer[key] for answer in result[peer]) for peer in PEERS)
        return " / ".join(f"{value:.{digits}f}" for value in medians)

    cells = [model]
    for key in ("seconds", "rest"):
        cells += [pair(key, 2), f"{ratio(result, key):.2f}"]
    cells += [pair("grown_mb", 0), f"{result['etx'][0]['weights_mb']:.0f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure, then write ``lowering.json`` and ``lowering.md``."""
    options = parse()
    sys.path.insert(0, str(HERE.parent / "interop"))
    from names import ROWS

    models = options.models or [*(row.name for row in ROWS.values() if not row.own), *EXTRA]
    options.folder.mkdir(parents=True, exist_ok=True)
    pythons = {"etx": options.host, "executorch": options.executorch}
    results: dict[str, Any] = {model: {peer: [] for peer in PEERS} for model in models}
    for turn in range(options.rounds):
        for model in models:
            for peer in PEERS if turn % 2 == 0 else PEERS[::-1]:
                results[model][peer].append(lower(pythons[peer], peer, model, options.folder))
            print(f"{turn + 1}/{options.rounds} {row(model, results[model])}", flush=True)
    means = {
        key: math.exp(statistics.mean(math.log(ratio(results[m], key)) for m in models))
        for key in ("seconds", "rest")
    }
    last = f"| geometric mean |  | {means['seconds']:.3f} |  | {means['rest']:.3f} |  |  |"
    table = HEAD + "\n".join([*(row(m, results[m]) for m in models), last]) + "\n"
    (options.folder / "lowering.md").write_text(table)
    document = {"results": results, "geometric_means": means}
    (options.folder / "lowering.json").write_text(json.dumps(document, indent=1))
    print(table)


if __name__ == "__main__":
    main()
