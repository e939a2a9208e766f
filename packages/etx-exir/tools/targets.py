#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the targets that the compiler carries, src/etx_exir/targets/{etx,executorch}.json.

Needs etx-kernels-portable. With --check, nothing is written: exit 1 if one is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

TARGETS = Path(__file__).parent.parent / "src" / "etx_exir" / "targets"
PEER = TARGETS / "executorch-1.5.1.txt"
PEER_BACKENDS = ("XnnpackBackend",)


def kernels() -> str:
    """Return the target of etx-kernels-portable, as it lies there."""
    from etx_kernels_portable import target_path

    return Path(target_path()).read_text(encoding="utf-8")


def executorch(ours: str) -> str:
    """Return the target of files that run on both runtimes."""
    theirs = set(PEER.read_text().split())
    missing = sorted(set(json.loads(ours)["operators"]) - theirs)
    target = {
        "name": "executorch",
        "description": "what etx-kernels-portable and ExecuTorch 1.5.1's wheel both have",
        "version": "1",
        "runtime": {"executorch": "1.5.1"},
        "extends": ["etx.json"],
        "without": missing,
        "elsewhere": dict.fromkeys(missing, "etx"),
        "backends": list(PEER_BACKENDS),
    }
    return json.dumps(target, indent=1) + "\n"


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    ours = kernels()
    wanted = {"etx.json": ours, "executorch.json": executorch(ours)}
    if not parser.parse_args().check:
        for name, text in wanted.items():
            (TARGETS / name).write_text(text, encoding="utf-8")
        return 0
    stale = [n for n, text in wanted.items() if (TARGETS / n).read_text(encoding="utf-8") != text]
    if stale:
        print(f"{', '.join(stale)} in {TARGETS}: stale; run this script", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
