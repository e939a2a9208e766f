#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write src/etx_exir/targets/portable.json: the operators that both runtimes have.

Needs etx-kernels-portable. With --check, nothing is written: exit 1 if stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

TARGETS = Path(__file__).parent.parent / "src" / "etx_exir" / "targets"
OUTPUT = TARGETS / "portable.json"
PEER = TARGETS / "executorch-1.5.1.txt"
PACKAGE = "etx (of etx-kernels-portable)"


def our_operators() -> dict[str, dict[str, list[str]]]:
    """Return what etx-kernels-portable has, with dtypes."""
    from etx_kernels_portable import target_path

    rows: dict[str, dict[str, list[str]]] = json.loads(Path(target_path()).read_text())["operators"]
    return rows


def document() -> str:
    """Return the target as JSON, one line an operator."""
    theirs = set(PEER.read_text().split())
    ours = our_operators()
    target = {
        "name": "portable",
        "description": "Operators that etx-kernels-portable and ExecuTorch 1.5.1's wheel have.",
        "version": "1",
        "runtime": {"min_version": "0.1"},
        "backends": [],
        "limits": {"max_rank": 16},
        "elsewhere": {name: PACKAGE for name in sorted(ours) if name not in theirs},
        "operators": {},
    }
    head = json.dumps(target, indent=1).removesuffix("{}\n}")
    rows = [
        f" {json.dumps(name)}: {json.dumps(row)}"
        for name, row in sorted(ours.items())
        if name in theirs
    ]
    return head + "{\n " + ",\n ".join(rows) + "\n }\n}\n"


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    wanted = document()
    if not parser.parse_args().check:
        OUTPUT.write_text(wanted)
        return 0
    if OUTPUT.read_text() == wanted:
        return 0
    have = set(json.loads(OUTPUT.read_text())["operators"])
    want = set(json.loads(wanted)["operators"])
    print(
        f"{OUTPUT} is stale: to add {sorted(want - have)}, to remove {sorted(have - want)};"
        " run this script without --check",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
