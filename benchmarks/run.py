# SPDX-License-Identifier: BSD-3-Clause
"""ETX and ExecuTorch's wheel side by side, without a delegate.

For each model of the interop set both exporters lower it, then both runtimes run their own file
in turns: a round starts a process on each, in alternating order, one at a time.
Ratios are formed within a round; the table shows their medians. The chain of additions is one
file, written by ETX, on both runtimes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from workers import Worker, write_inputs

from build import Binaries, build

HERE = Path(__file__).parent
INTEROP = HERE.parent / "interop"
PEERS = ("etx", "executorch")
CHAIN = 100
SLOW = 5e9
"""Nanoseconds from which a model's first call, in one round, is all that is measured."""


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True, help="python with etx-exir")
    parser.add_argument("--device", required=True, help="python with etx-runtime and kernels")
    parser.add_argument("--executorch", required=True, help="python with executorch")
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".build" / "bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=1.0, help="seconds a turn should last")
    parser.add_argument("models", nargs="*", help="all of the set unless given")
    return parser.parse_args()


def lower(options: argparse.Namespace, models: list[str]) -> dict[str, dict[str, float]]:
    """Lower every model with both exporters in turns; seconds after ``torch.export``."""
    seconds: dict[str, dict[str, float]] = {}
    for model in models:
        folder = options.folder / model
        if not (folder / "calls.npz").exists():
            script(options.host, "reference.py", options.folder, model)
        for peer, python in zip(PEERS, (options.host, options.executorch), strict=True):
            if not (folder / f"{peer}.json").exists():
                script(python, "lower.py", peer, options.folder, model)
        seconds[model] = {
            peer: json.loads((folder / f"{peer}.json").read_text())["seconds"] for peer in PEERS
        }
    return seconds


def script(python: str, name: str, *args: object) -> None:
    """Run one of the interop suite's scripts."""
    subprocess.run([python, "-W", "ignore", name, *map(str, args)], cwd=INTEROP, check=True)


def measure(
    options: argparse.Namespace, binaries: Binaries, files: dict[str, Path], inputs: Path
) -> dict[str, Any]:
    """Load, run and weigh one model on both runtimes, a process each in every round."""
    results: dict[str, Any] = {
        p: {"load": [], "first": [], "steady": [], "peak_kb": 0} for p in PEERS
    }
    for turn in range(options.rounds):
        for peer in PEERS if turn % 2 == 0 else PEERS[::-1]:
            worker = Worker(binaries.workers[peer], files[peer], inputs, binaries.libraries[peer])
            answer = worker.ask("load")
            times = [answer["first"]]
            if answer["first"] < SLOW:
                count = max(1, min(2000, int(options.turn * 1e9 / answer["first"])))
                times = worker.ask(f"run {count}")["run"]
            results[peer]["load"].append(answer["load"])
            results[peer]["first"].append(answer["first"])
            results[peer]["steady"].append(statistics.median(times))
            results[peer]["peak_kb"] = worker.ask("memory")["peak_kb"]
            worker.close()
        if any(results[peer]["first"][-1] >= SLOW for peer in PEERS):
            break
    return results


def ratio(result: dict[str, Any], key: str) -> float:
    """Median over rounds of ExecuTorch's time over ETX's."""
    pairs = zip(result["executorch"][key], result["etx"][key], strict=False)
    return statistics.median(theirs / ours for theirs, ours in pairs)


def digits(number: float) -> str:
    """Format with three significant digits, without exponents."""
    if number >= 100:
        return f"{number:.0f}"
    return np.format_float_positional(number, precision=3, fractional=False, trim="-")


def row(model: str, result: dict[str, Any], seconds: dict[str, float] | None) -> str:
    """Format one line of the table."""
    cells = [model]
    if seconds:
        cells.append(f"{seconds['etx']:.2f} / {seconds['executorch']:.2f}")
    else:
        cells.append("")
    for key, scale in (("load", 1e6), ("first", 1e6), ("steady", 1e6)):
        ours, theirs = (statistics.median(result[peer][key]) / scale for peer in PEERS)
        cells.append(f"{digits(ours)} / {digits(theirs)}")
    cells.append(f"{ratio(result, 'steady'):.1f}")
    cells.append(" / ".join(f"{result[peer]['peak_kb'] / 1024:.1f}" for peer in PEERS))
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure, then write ``results.json`` and ``results.md``."""
    options = parse()
    sys.path.insert(0, str(INTEROP))
    from names import ROWS

    models = options.models or [row.name for row in ROWS.values() if not row.own]
    options.folder.mkdir(parents=True, exist_ok=True)
    binaries = build(options.folder / "native", options.device, options.executorch)
    seconds = lower(options, [*models, "chain"])
    results: dict[str, Any] = {}
    head = (
        "| model | lowering, s | load, ms | first, ms | steady, ms | times faster | peak, MB |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
    )
    lines = []
    for model in [*models, "chain"]:
        folder = options.folder / model
        arrays = np.load(folder / "calls.npz")
        sizes = json.loads((folder / "calls.json").read_text())
        last = len(sizes) - 1
        inputs = write_inputs(folder, [arrays[f"call{last}_input{i}"] for i in range(sizes[-1][0])])
        files = {peer: folder / f"{peer}.pte" for peer in PEERS}
        if model == "chain":
            files["executorch"] = files["etx"]
        results[model] = measure(options, binaries, files, inputs)
        lines.append(row(model, results[model], seconds.get(model)))
        print(lines[-1], flush=True)
    chain = {p: statistics.median(results["chain"][p]["steady"]) / CHAIN for p in PEERS}
    note = f"\nAn instruction of the chain: {chain['etx']:.1f} ns / {chain['executorch']:.1f} ns.\n"
    (options.folder / "results.md").write_text(head + "\n".join(lines) + "\n" + note)
    document = {"seconds": seconds, "results": results, "instruction_ns": chain}
    (options.folder / "results.json").write_text(json.dumps(document, indent=1))
    print(note)


if __name__ == "__main__":
    main()
