# SPDX-License-Identifier: BSD-3-Clause
"""ETX, ExecuTorch and LiteRT from Python: dispatch, load time and resident memory.

Each runtime's own exporter writes the models; then every round starts a process for each runtime
and model, one at a time, in an order that rotates. Figures are medians of the rounds; ratios to
ETX are formed within a round. At last, what ETX itself costs (``costs.py``).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RUNTIMES = ("etx", "executorch", "litert", "litert_xnnpack")
SMALL = HERE.parent / "packages" / "etx-schema" / "tests" / "data" / "add.pte"
LENGTHS = (100, 300)
CHAINS = tuple(f"chain{length}" for length in LENGTHS)
MODELS = ("mobilenet_v2", "llama110m")
SUFFIX = {"etx": "etx.pte", "executorch": "executorch.pte", "litert": "litert.tflite"}
TITLES = ("ETX", "ExecuTorch", "LiteRT", "LiteRT + XNNPACK")

Answers = dict[str, list[dict[str, Any]]]


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True, help="python with etx-exir")
    parser.add_argument("--device", required=True, help="python with etx-runtime and kernels")
    parser.add_argument("--executorch", required=True, help="python with executorch")
    parser.add_argument("--litert", required=True, help="python with litert-torch")
    parser.add_argument("--folder", type=Path, default=HERE.parent / ".build" / "bench-footprint")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of every runtime (default: 1)")
    return parser.parse_args()


def prepare(options: argparse.Namespace) -> None:
    """Write what is not there yet: the inputs, and each model for each runtime."""
    options.folder.mkdir(parents=True, exist_ok=True)
    pythons = {"etx": options.host, "executorch": options.executorch, "litert": options.litert}
    for model in (*CHAINS, *MODELS):
        for runtime, python in pythons.items():
            path = options.folder / f"{model}.{SUFFIX[runtime]}"
            if path.exists():
                continue
            print(f"{model} for {runtime}", flush=True)
            inputs = [options.folder / f"{model}.npz"] if runtime == "etx" else []
            script = HERE / "footprint_models.py"
            command = [python, "-W", "ignore", script, runtime, model, path, *inputs]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def ask(options: argparse.Namespace, runtime: str, models: tuple[str, ...]) -> dict[str, Any]:
    """Measure one runtime in a fresh process."""
    kind = runtime.partition("_")[0]
    python = getattr(options, "device" if kind == "etx" else kind)
    files = [options.folder / f"{model}.{SUFFIX[kind]}" for model in models]
    inputs = options.folder / f"{models[0]}.npz"
    worker = [python, "-W", "ignore", HERE / "footprint_worker.py", runtime]
    command = [*worker, str(options.threads), inputs, *files]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def per_instruction(answer: dict[str, Any]) -> float:
    """Return the nanoseconds of an instruction: the slope between both lengths."""
    short, long = answer["call_ns"]
    return float((long - short) / (LENGTHS[1] - LENGTHS[0]))


def ratio(answers: Answers, runtime: str, get: Any) -> float:
    """Return the median over rounds of a runtime's figure, in ETX's."""
    pairs = zip(answers[runtime], answers["etx"], strict=True)
    return statistics.median(get(theirs) / get(ours) for theirs, ours in pairs)


def line(label: str, answers: Answers, get: Any, digits: int) -> str:
    """Format one line of a table: medians, in brackets the ratio to ETX."""
    cells = []
    for runtime in RUNTIMES:
        value = statistics.median(get(answer) for answer in answers[runtime])
        times = "" if runtime == "etx" else f" ({ratio(answers, runtime, get):.1f})"
        cells.append(f"{value:.{digits}f}{times}")
    return f"| {label} | {' | '.join(cells)} |"


def megabytes(step: str, key: str, since: str | None = None) -> Any:
    """Return a function that reads a size of 10^6 bytes, or its growth since a step."""

    def get(answer: dict[str, Any]) -> float:
        before = answer["kb"][since][key] if since else 0
        return float((answer["kb"][step][key] - before) * 1024 / 1e6)

    return get


def table(results: dict[str, Answers]) -> str:
    """Write all tables."""
    head = f"| | {' | '.join(TITLES)} |\n|{' --- |' * (len(TITLES) + 1)}\n"
    chain = results["chain"]
    rows = [line("an instruction, ns", chain, per_instruction, 1)]
    rows.append(line("import, ms", chain, lambda a: a["ms"]["import"], 1))
    rows.append(line("resident after import, MB", chain, megabytes("import", "Rss"), 1))
    text = head + "\n".join(rows) + "\n"
    for model in MODELS:
        answers = results[model]
        rows = [
            line("load, ms", answers, lambda a: a["ms"]["load"], 2),
            line("first call, ms", answers, lambda a: a["ms"]["first"], 1),
            line("import to first result, ms", answers, lambda a: sum(a["ms"].values()), 1),
            line("later calls, ms", answers, lambda a: a["call_ns"][0] / 1e6, 1),
        ]
        for step in ("load", "first"):
            label = {"load": "after load", "first": "after a call"}[step]
            rows.append(line(f"resident {label}, MB", answers, megabytes(step, "Rss"), 1))
            rows.append(line("... of it anonymous, MB", answers, megabytes(step, "Anonymous"), 1))
        rows.append(line("peak, MB", answers, megabytes("first", "Peak"), 1))
        text += f"\n{model}\n\n{head}" + "\n".join(rows) + "\n"
    floor = statistics.median(megabytes("start", "Rss")(a) for a in chain["etx"])
    return f"{text}\nOnly Python and NumPy: {floor:.1f} MB.\n"


def main() -> None:
    """Measure; after each round write ``footprint.json`` and ``footprint.md``."""
    options = parse()
    prepare(options)
    work = {"chain": CHAINS, **{model: (model,) for model in MODELS}}
    results: dict[str, Answers] = {name: {r: [] for r in RUNTIMES} for name in work}
    for turn in range(options.rounds):
        first = turn % len(RUNTIMES)
        for name, models in work.items():
            for runtime in RUNTIMES[first:] + RUNTIMES[:first]:
                results[name][runtime].append(ask(options, runtime, models))
        text = table(results)
        (options.folder / "footprint.json").write_text(json.dumps(results, indent=1))
        (options.folder / "footprint.md").write_text(text)
        print(f"round {turn + 1} of {options.rounds}", flush=True)
    print(text)
    mobilenet = options.folder / "mobilenet_v2.etx.pte"
    subprocess.run([options.device, HERE / "costs.py", SMALL, mobilenet], check=True)


if __name__ == "__main__":
    main()
