#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own samples through compiler and runtime, in six dtypes, by a harness of others.

The harness is run as it is; ETX is its plug-in. The page has a row for each pair, target and dtype
that was run in the folder of results, of the run with the most samples, and what did not pass with
its reason. What exceptions.json does not know fails.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
PLUG = Path(__file__).parent / "plug.py"
QUICK = Path(__file__).parent / "quick.py"
DTYPES = ("float32", "int64", "bool", "float16", "bfloat16", "float64")
PLUGINS = {"etx": f"{PLUG}:Etx", "executorch": f"{PLUG}:Both"}
PEER = "executorch"
PAIRS = {"etx-etx": 1, "etx-executorch": 1, "executorch-etx": 1, "executorch-executorch": 0}
PART = ".part.json"
MOST = (0, *range(99, 0, -1))
EXACT, TIES = " (as float64, to the last digit)", " (of equal elements)"
NEAR = " (as near to float64)"
CHECKED = {
    EXACT: "eager rounds on the way; ETX's numbers are float64's, rounded once",
    TIES: "which of equal elements is named, eager leaves open",
    NEAR: "terms cancel: eager is at least half as far from float64",
}
KNOWN = Path(__file__).with_name("exceptions.json")
HEAD = """# Conformance

Written by `python3 noxfile.py -s conformance` on {date} of all that was run in its folder:
PyTorch's samples of its operators (`op_db`) are exported, compiled, run and compared with eager,
of each operator so many as the first column says. A pair is compiler → runtime. *Core* are samples
whose graph has operators of `torch.Tag.core` and no others, *beyond* all others that
`torch.export` takes. A file of target `executorch` runs on ExecuTorch as well. Of a draw such as
`rand`, and of `empty`, dtype and shape are compared. `torch.linalg` and the orthogonal polynomials
of `torch.special`, which ETX leaves out, count in the last column but one, not in the last.
*Whole* is an operator whose core samples all pass; an unfinished run has those that it came to.

| samples | pair | target | dtype | core | whole operators | beyond | beyond, in scope |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
FAILED = """
## Core samples that do not pass

| pair | target | dtype | operator | samples | what, of the first | why it is none of ETX |
| --- | --- | --- | --- | --- | --- | --- |
"""
REFUSED = """
## Beyond core, what does not pass

| operator | samples | what |
| --- | --- | --- |
"""
OUT_OF_SCOPE = re.compile(
    r"aten::(linalg_|cholesky|lu_|geqrf|ormqr|triangular_solve|_linalg|pinverse|"
    r"special_\w*polynomial)"
)


def parsed() -> tuple[argparse.Namespace, list[str]]:
    """Return the options, and what is the harness's."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("harness", type=Path, help="opinfo_executorch.py")
    parser.add_argument("--work", type=Path, required=True, help="folder of results")
    parser.add_argument("--keep", action="store_true", help="go on after what ran before")
    parser.add_argument("--again", action="store_true", help="with --keep: run what failed again")
    parser.add_argument(
        "--so-far", action="store_true", help="run nothing: write the page, of unfinished runs too"
    )
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--targets", nargs="+", default=list(PLUGINS), choices=list(PLUGINS))
    parser.add_argument(
        "--pairs", nargs="+", default=["etx-etx"], choices=list(PAIRS), help="compiler-runtime"
    )
    parser.add_argument("--max-samples", type=int, default=3, help="of an operator; 0: every one")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--page", type=Path, default=PAGE, help="write the table here")
    return parser.parse_known_args()


def main() -> int:
    """Run each row, write the page; return 1 when a core sample of ours did not pass."""
    options, rest = parsed()
    if not options.harness.is_file():
        sys.exit(f"{options.harness} is not there: give the path of opinfo_executorch.py")
    options.work.mkdir(parents=True, exist_ok=True)
    if options.so_far:
        for pair, target, dtype, most in product(PAIRS, PLUGINS, DTYPES, MOST):
            unfinished(options, pair, target, dtype, most)
        options.page.write_text(page(noted(options.work)), encoding="utf-8")
        return 0
    results = []
    for pair in options.pairs:
        for target in options.targets if PAIRS[pair] else options.targets[:1]:
            for dtype in options.dtypes:
                found = result(options, rest, pair, target, dtype)
                results.append((pair, target, found))
                print(row(pair, target, found), flush=True)
    if not rest:
        options.page.write_text(page(noted(options.work)), encoding="utf-8")
    unknown = {
        each["op"]
        for pair, target, found in results
        for each in found["failures"]
        if pair == "etx-etx" and not excuse(each, target)
    }
    if unknown:
        print(f"fail, and are not in {KNOWN.name}: {', '.join(sorted(unknown))}")
    return int(bool(unknown))


def noted(work: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Return results in their order: the one with the most samples, and unfinished ones of more."""
    found = []
    for pair, target, dtype in product(PAIRS, PLUGINS, DTYPES):
        for most in MOST:
            whole = work / f"{pair}-{target}-{dtype}-{most}.json"
            path = whole if whole.exists() else whole.with_suffix(PART)
            if not path.exists():
                continue
            read = json.loads(path.read_text(encoding="utf-8"))
            read["summary"]["part"] = path != whole
            if read["summary"]["samples_core"]:
                found.append((pair, target, read))
            if path == whole:
                break
    return found


def excuse(failure: dict[str, Any], target: str) -> str:
    """Return why it is none of ETX that a sample fails; nothing where that is not known."""
    for mark, why in CHECKED.items():
        if str(failure["why"]).endswith(mark):
            return why
    reasons: dict[str, Any] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return str(reasons[target].get(failure["op"], {}).get(failure["v"], ""))


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
        command += ["--workers", str(options.workers), *["--go-on"] * options.keep]
        command += ["--work", options.work / "journals", "--out", out, *rest]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elif options.again:
        again(options, out, tag, lower, runner, dtype)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def unfinished(options: argparse.Namespace, pair: str, target: str, dtype: str, most: int) -> None:
    """Have the harness report on the journals of a run that has not come to its end."""
    tag = f"{pair}-{target}-{dtype}-{most}"
    out = options.work / f"{tag}.json"
    if out.exists() or not list((options.work / "journals").glob(f"{tag}.*.jsonl")):
        return
    command: list[str | Path] = [sys.executable, QUICK, options.harness]
    command += ["--dtype", dtype, "--max-samples", str(most), "--work", options.work / "journals"]
    command += ["--report-from", tag, "--out", out.with_suffix(PART)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def again(
    options: argparse.Namespace, out: Path, tag: str, lower: str, runner: str, dtype: str
) -> None:
    """Run the operators once more of which a sample failed; the harness unites the journals."""
    before = json.loads(out.read_text(encoding="utf-8"))
    failed = {each["op"] for kind in ("failures", "beyond_failures") for each in before[kind]}
    base = [sys.executable, QUICK, options.harness, "--lower", lower, "--run", runner]
    base += ["--dtype", dtype, "--max-samples", str(options.max_samples)]
    base += ["--workers", str(options.workers), "--work", options.work / "journals"]
    if failed:
        names = ["--ops", ",".join(sorted(failed)), "--tag", f"{tag}-again"]
        subprocess.run([*base, *names], check=True, stdout=subprocess.DEVNULL)
        report = ["--report-from", f"{tag},{tag}-again", "--out", out]
        subprocess.run([*base, *report], check=True, stdout=subprocess.DEVNULL)


def row(pair: str, target: str, found: dict[str, Any]) -> str:
    """Return a row of the table."""
    s = found["summary"]
    core = f"{s['samples_core_pass']} of {s['samples_core']}"
    whole = f"{s['opinfos_core_all_pass']} of {s['opinfos_core']}"
    beyond = f"{s['verdicts_beyond'].get('pass', 0)} of {s['samples_beyond']}"
    outside = sum(is_outside(each) for each in found["beyond_failures"])
    scope = f"{s['verdicts_beyond'].get('pass', 0)} of {s['samples_beyond'] - outside}"
    most = str(s["max_samples"] or "all") + (", unfinished" if s.get("part") else "")
    cells = [most, pair.replace("-", " → "), target, s["dtype"], core, whole, beyond, scope]
    names = " | ".join(cells)
    return f"| {names} |"


def is_outside(failure: dict[str, Any]) -> bool:
    """Tell whether a sample needs what ETX leaves out."""
    return any(OUT_OF_SCOPE.match(name) for name in failure["beyond"])


def page(results: list[tuple[str, str, dict[str, Any]]]) -> str:
    """Return the page: counts, then each operator of which a core sample did not pass."""
    lines = [row(*each) for each in results]
    text = HEAD.format(date=date.today()) + "\n".join(lines) + "\n"
    failed: Counter[tuple[str, ...]] = Counter()
    refused: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, ...], str] = {}
    for pair, target, found in results:
        for each in found["failures"]:
            place = (pair, target, found["summary"]["dtype"], f"`{each['op']}`")
            key = (*place, each["v"], reason(pair, target, each))
            first.setdefault(key, f"{each['v']}: `{shortened(each)}`")
            failed[key] += 1
        for each in found["beyond_failures"] if pair == "etx-etx" else ():
            missing = ", ".join(f"`{name}`" for name in each["beyond"])
            key = (f"`{each['op']}`", missing if each["v"] == "lower_fail" else each["v"])
            said = missing if each["v"] == "lower_fail" else f"{each['v']}: `{shortened(each)}`"
            first.setdefault(key, said)
            refused[key] += 1
    text += FAILED if failed else "\nEvery core sample passes.\n"
    for (*place, v, why), count in failed.items():
        what = first[(*place, v, why)]
        text += f"| {' | '.join(place)} | {count} | {what} | {why} |\n"
    text += REFUSED
    for (op, what), count in sorted(refused.items()):
        text += f"| {op} | {count} | {first[op, what]} |\n"
    return text


def reason(pair: str, target: str, failure: dict[str, Any]) -> str:
    """Return who is to blame, where that is known."""
    if pair == "executorch-executorch" or (
        pair == "executorch-etx" and failure["v"] == "lower_fail"
    ):
        return "ExecuTorch alone"
    return excuse(failure, target) or "**open**"


def shortened(failure: dict[str, Any]) -> str:
    """Return the first words of why, without what each refusal begins with."""
    why = str(failure["why"]).split("missing:")[-1].strip()
    return why[:90].replace("|", "/")


if __name__ == "__main__":
    sys.exit(main())
