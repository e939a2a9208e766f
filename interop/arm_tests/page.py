# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/arm-tests.md: `page.py OURS.json THEIRS.json`, as run.py and theirs.py write them."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "arm-tests.md"
TARGETS = {
    "TOSA FP": r"tosa_FP",
    "TOSA INT": r"tosa_INT|_INT_16a8w|tosa_int",
    "Ethos-U55": r"u55",
    "Ethos-U65": r"u65",
    "Ethos-U85": r"u85",
    "VGF": r"vgf",
    "others": r"",
}
GROUPS = {
    "floats of 8 bits, an extension of TOSA": r"fp8",
    "branches and loops, another extension": r"^(cond|while)\.",
    "sizes that are known when it runs": r"_dynamic_",
    "bfloat16, rounded elsewhere than PyTorch does": r"bf16",
    "activations of 32 bits": r"32bit|INT_i32",
    "integers in the profile of floats": r"tosa_FP.*int(8|16|32|64)|_int32",
    "others": r"",
}
"""What cases are about that pass only on ExecuTorch, by their names."""
HEAD = """# ExecuTorch's tests of Arm operators

`python3 noxfile.py -s arm-tests -- --write` calls the tests of ExecuTorch 1.5.1's
`backends/arm/test/ops`, as they lie in its wheel, on ETX's quantizers and partitioners, then on
ExecuTorch, and writes this page. A case is a test with one set of its parameters. It passes where
there is one delegate (none where nothing is left to compute, as of an alias), the operator is not
left beside it, and the result is the quantized model's: of TOSA on the reference model, of an
Ethos-U55 or U65 on ETX's simulator. On ExecuTorch those need Arm's simulator, and are left out
there; so are an Ethos-U85 (it is compiled) and VGF on both sides, tests of what ExecuTorch's
partitioner does not take or of its stages, and what PyTorch does not export. "Known" are failures
that its tests expect. Its columns are of the cases that were called there: where not all, the first
files.
What a run that ended has found stays in `.build/arm-tests`; `-- --resume --write` goes on from it.

"""
COLUMNS = (
    "| | cases | ETX: pass | do not | left out | ExecuTorch: pass | do not | known | left out |\n"
)


def target(name: str) -> str:
    """Return the target that a case is about."""
    return next(key for key, pattern in TARGETS.items() if re.search(pattern, name))


def kind(why: str) -> str:
    """Return what became of a case."""
    word = why.partition(":")[0]
    return "pass" if not why else word if word in ("left out", "known") else "not"


def reason(why: str) -> str:
    """Return why a case does not pass without what is of this case alone."""
    plain = re.sub(r"/\S+/|\[[^]]*\]|\([^)]*\)|'[^']*'|0x[0-9a-f]+|[-\d.e]*\d", "…", why)
    return " ".join(plain.split())[:110].replace("|", "\\|")


def by_case(ours: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    """Return what became of each case, where ours is of a whole file that was not called."""
    files = [name for name in ours if "." not in name]
    cases = {n: ours[f] for f in files for n in theirs if n.startswith(f"{f}.")}
    held = {f for f in files if any(n.startswith(f"{f}.") for n in theirs)}
    return {n: why for n, why in ours.items() if n not in held} | cases


def page(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """Return the page's text."""
    ours = by_case(ours, theirs)
    text = HEAD + COLUMNS + "| --- |" + " ---: |" * 8 + "\n"
    for label in [*TARGETS, "all"]:
        names = [n for n in ours if label in ("all", target(n))]
        if not names:
            continue
        mine = Counter(kind(ours[n]) for n in names)
        other = Counter(kind(theirs[n]) for n in names if n in theirs)
        cells = [len(names), *(mine[k] for k in ("pass", "not", "left out"))]
        cells += [other[k] for k in ("pass", "not", "known", "left out")]
        text += f"| {label} | {' | '.join(map(str, cells))} |\n"
    called = {target(name) for name in ours}
    missing = [label for label in TARGETS if label not in called]
    if missing:
        text += f"\nNot called for this page: the cases of {', '.join(missing)}.\n"
    functions: dict[str, list[str]] = {}
    for name, why in ours.items():
        functions.setdefault(name.partition("[")[0], []).append(kind(why))
    whole = sum(set(each) == {"pass"} for each in functions.values())
    rest = sum("left out" in each for each in functions.values())
    text += f"\nOf {len(functions)} tests {whole} pass with all their parameters on ETX, "
    text += f"{rest} are left out.\n"
    failed = Counter(reason(why) for why in ours.values() if kind(why) == "not")
    alone = ("not", "known")
    only = [n for n, why in ours.items() if not why and kind(theirs.get(n, "left out")) in alone]
    lost = [n for n, why in ours.items() if kind(why) == "not" and theirs.get(n, "x") == ""]
    both = [n for n in ours if n in theirs and "left out" not in (kind(ours[n]), kind(theirs[n]))]
    mine, other = (sum(not each[n] for n in both) for each in (ours, theirs))
    text += (
        f"Of {len(both)} cases that were called on both {mine} pass on ETX, {other} on ExecuTorch: "
    )
    text += f"{len(only)} only on ETX, {len(lost)} only on ExecuTorch.\n"
    about = Counter(next(g for g, found in GROUPS.items() if re.search(found, n)) for n in lost)
    text += "\n| only on ExecuTorch | cases |\n| --- | ---: |\n"
    for group, count in about.most_common():
        text += f"| {group} | {count} |\n"
    text += "\nWhy cases do not pass on ETX:\n\n| cases | reason |\n| ---: | --- |\n"
    for said, count in failed.most_common():
        text += f"| {count} | {said} |\n"
    return text


def main(ours: str, theirs: str) -> int:
    """Write the page."""
    both = [json.loads(Path(name).read_text(encoding="utf-8")) for name in (ours, theirs)]
    PAGE.write_text(page(*both), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
