#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own samples through compiler and runtime, in six dtypes, by a harness of others.

The harness is run as it is; ETX is its plug-in. The page has a row for each target and dtype, and
what did not pass with its reason.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
PLUG = Path(__file__).parent / "plug.py"
QUICK = Path(__file__).parent / "quick.py"
DTYPES = ("float32", "int64", "bool", "float16", "bfloat16", "float64")
PLUGINS = {"etx": f"{PLUG}:Etx", "executorch": f"{PLUG}:Both"}
PEER = "executorch"
PAIRS = {"etx-etx": 1, "etx-executorch": 1, "executorch-etx": 1, "executorch-executorch": 0}
HEAD = """# Conformance

Written by `python3 noxfile.py -s conformance -- {arguments}`: PyTorch's
samples of its operators (`op_db`) are exported, compiled, run and compared with eager,
{samples}. *Core* are samples whose graph has operators of
`torch.Tag.core` and no others, *beyond* all others that `torch.export` takes. A file of target
`executorch` runs on ExecuTorch as well. Of a draw such as `rand`, and of `empty`, dtype and shape
are compared.

| compiler → runtime | target | dtype | core | operators whose core samples all pass | beyond |
| --- | --- | --- | --- | --- | --- |
"""
FAILED = """
Core samples that do not pass:

| pair | target | dtype | operator | samples | what |
| --- | --- | --- | --- | --- | --- |
"""


def parsed() -> tuple[argparse.Namespace, list[str]]:
    """Return the options, and what is the harness's."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("harness", type=Path, help="opinfo_executorch.py")
    parser.add_argument("--work", type=Path, required=True, help="folder of results")
    parser.add_argument("--keep", action="store_true", help="go on after what ran before")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--targets", nargs="+", default=list(PLUGINS), choices=list(PLUGINS))
    parser.add_argument(
        "--pairs", nargs="+", default=["etx-etx"], choices=list(PAIRS), help="compiler-runtime"
    )
    parser.add_argument("--max-samples", type=int, default=3, help="of an operator; 0: every one")
    parser.add_argument("--page", type=Path, default=PAGE, help="write the table here")
    return parser.parse_known_args()


def main() -> int:
    """Run each row, write the page; return 1 when a core sample of ours did not pass."""
    options, rest = parsed()
    if not options.harness.is_file():
        sys.exit(f"{options.harness} is not there: give the path of opinfo_executorch.py")
    options.work.mkdir(parents=True, exist_ok=True)
    results = []
    for pair in options.pairs:
        for target in options.targets if PAIRS[pair] else options.targets[:1]:
            for dtype in options.dtypes:
                found = result(options, rest, pair, target, dtype)
                results.append((pair, target, found))
                print(row(pair, target, found), flush=True)
    if not rest:
        given = " ".join(word for word in sys.argv[4:] if word != "--keep")
        text = page(results, options.max_samples, given)
        options.page.write_text(text, encoding="utf-8")
    ours = [found for pair, _, found in results if pair == "etx-etx"]
    return int(any(found["failures"] for found in ours))


def result(
    options: argparse.Namespace, rest: list[str], pair: str, target: str, dtype: str
) -> dict[str, Any]:
    """Return what the harness says, or with `--keep` said when it had these arguments before."""
    lower, runner = (PEER if side == PEER else PLUGINS[target] for side in pair.split("-"))
    tag = "-".join([pair, target, dtype, str(options.max_samples), *rest]).replace("/", "_")
    out = options.work / f"{tag}.json"
    if not (options.keep and out.exists()):
        command = [sys.executable, QUICK, options.harness, "--lower", lower, "--run", runner]
        command += ["--dtype", dtype, "--max-samples", str(options.max_samples), "--tag", tag]
        command += ["--work", options.work / "journals", "--out", out, *rest]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def row(pair: str, target: str, found: dict[str, Any]) -> str:
    """Return a row of the table."""
    s = found["summary"]
    core = f"{s['samples_core_pass']} of {s['samples_core']}"
    whole = f"{s['opinfos_core_all_pass']} of {s['opinfos_core']}"
    beyond = f"{s['verdicts_beyond'].get('pass', 0)} of {s['samples_beyond']}"
    names = " | ".join([pair.replace("-", " → "), target, s["dtype"], core, whole, beyond])
    return f"| {names} |"


def page(results: list[tuple[str, str, dict[str, Any]]], most: int, arguments: str) -> str:
    """Return the page: counts, then each operator of which a core sample did not pass."""
    samples = f"up to {most} samples of each" if most else "every sample"
    lines = [row(*each) for each in results]
    text = HEAD.format(samples=samples, arguments=arguments) + "\n".join(lines) + "\n"
    failed: Counter[tuple[str, ...]] = Counter()
    for pair, target, found in results:
        for each in found["failures"]:
            reason = str(each["why"])[:90].replace("|", "/")
            failed[pair, target, found["summary"]["dtype"], each["op"], each["v"], reason] += 1
    if not failed:
        return text + "\nEvery core sample passes.\n"
    text += FAILED
    for (pair, target, dtype, op, verdict, reason), count in failed.items():
        text += f"| {pair} | {target} | {dtype} | `{op}` | {count} | {verdict}: `{reason}` |\n"
    return text


if __name__ == "__main__":
    sys.exit(main())
