# SPDX-License-Identifier: BSD-3-Clause
"""A regular operator is one row of unary.def: what else names it is written from that."""

import json
import re
from pathlib import Path

PACKAGES = Path(__file__).parent.parent / "packages"
ROWS = PACKAGES / "etx-kernels-portable/native/ops/elementwise/unary.def"
KERNELS = PACKAGES / "etx-kernels-portable/src/etx_kernels_portable/etx.json"
TARGETS = PACKAGES / "etx-schema/src/etx_schema/targets"
PEER = PACKAGES / "etx-schema/tools/executorch-1.5.1.json"
SUFFIXES = {".py", ".h", ".cpp", ".def", ".cmake"}
REGULAR = {"acosh", "asinh", "atanh", "expm1", "log10"}
"""Operators that no rule or decomposition, no quantizer and no backend speaks of, but Arm's, where
any function of one value is a table."""


def operators(path):
    return json.loads(path.read_text(encoding="utf-8"))["operators"]


def named_in(source):
    """Return the operators that a source names as ATen's or as kernels."""
    text = source.read_text(encoding="utf-8", errors="replace")
    return set(re.findall(r"\baten(?:\.|::)(\w+)|\b(?!aten)(\w+)_out\b", text))


def test_a_row_is_all_that_the_sources_say():
    rows = ROWS.read_text(encoding="utf-8")
    names = re.findall(r"^ETX_(?:UNARY|IN_DOUBLE)\((\w+),", rows, re.MULTILINE)
    assert set(names) >= REGULAR
    packages = [path for path in PACKAGES.iterdir() if path.name != "etx-backend-arm"]
    folders = [path for package in packages for path in package.glob("[sni]*/")]
    sources = [p for f in folders for p in f.rglob("*") if p.suffix in SUFFIXES and p != ROWS]
    assert len(sources) > 500
    found = {n for source in sources for pair in named_in(source) for n in pair if n}
    assert {"relu", "permute_copy"} <= found
    assert found & REGULAR == set()
    assert {f"aten::{name}.out" for name in names} <= operators(KERNELS).keys()


def test_rows_of_targets_agree():
    """What lies where the compiler finds it is what the kernels' package says."""
    assert operators(TARGETS / "etx.json") == operators(KERNELS)
    both = json.loads((TARGETS / "executorch.json").read_text(encoding="utf-8"))
    peer = json.loads(PEER.read_text(encoding="utf-8"))
    here, there = operators(KERNELS), set(peer["operators"])
    assert set(both["without"]) == here.keys() - there
    assert both["narrower"].keys() <= here.keys()
    in_place = {name for name, row in here.items() if row.get("in_place")}
    taken_back = {name for name, row in both["narrower"].items() if refuses(row)}
    assert (in_place & there) - taken_back == set(peer["in_place"])


def refuses(row):
    return any(part.get("in_place") is False for part in (row, *row.get("all", ())))
