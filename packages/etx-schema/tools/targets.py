#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the targets that etx-schema carries, src/etx_schema/targets/{etx,executorch}.json.

Needs etx-kernels-portable. With --check, nothing is written: exit 1 if one is stale. What
ExecuTorch's kernels take lies in executorch-1.5.1.json: `operators` its wheel registers, `dtypes`
and `layouts` (what takes more than tensors in rows) as `nox -s executorch-kernels` measured them,
`limits` as PyTorch's samples showed them, `in_place` those whose result may lie on an argument.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from generated import write_or_check

TARGETS = Path(__file__).parent.parent / "src" / "etx_schema" / "targets"
PEER = Path(__file__).parent / "executorch-1.5.1.json"
LAYOUT = "ExecuTorch: other dim orders fail or differ"
PEER_BACKENDS = ("XnnpackBackend",)


def kernels() -> str:
    """Return the target of etx-kernels-portable, as it lies there."""
    from etx_kernels_portable import target_path

    return Path(target_path()).read_text(encoding="utf-8")


def executorch(ours: str) -> str:
    """Return the target of files that run on both runtimes."""
    peer = json.loads(PEER.read_text(encoding="utf-8"))
    operators = json.loads(ours)["operators"]
    missing = sorted(set(operators) - set(peer["operators"]))
    rows: dict[str, list[Any]] = {}
    ours_alone = {name for name, row in operators.items() if "in_place" in row}
    ours_alone -= {*peer["in_place"], *missing}
    apart = {name: {"in_place": False} for name in ours_alone}
    for table in (peer["dtypes"], peer["limits"], apart):
        for name, row in table.items():
            rows.setdefault(name, []).append(row)
    layouts = {name: kind for kind, names in peer["layouts"].items() for name in names}
    for name in operators:
        layout = layouts.get(name, "rows")
        if layout != "any" and "_prim::" not in name:
            rows.setdefault(name, []).append({"layout": layout, "why": LAYOUT})
    kept = {name: found for name, found in sorted(rows.items()) if name in operators}
    target = {
        "name": "executorch",
        "description": "kernels that etx-kernels-portable and ExecuTorch 1.5.1's wheel both have, "
        "with the backends of that wheel",
        "version": "1",
        "runtime": {"executorch": "1.5.1"},
        "extends": ["etx.json"],
        "without": missing,
        "elsewhere": dict.fromkeys(missing, "etx"),
        "narrower": None,
        "backends": list(PEER_BACKENDS),
    }
    compact = json.JSONEncoder(separators=(",", ":")).encode  # a device has the file
    lines = [
        f"  {json.dumps(name)}: {compact(found[0] if len(found) == 1 else {'all': found})}"
        for name, found in kept.items()
    ]
    narrower = '"narrower": {\n' + ",\n".join(lines) + "\n }"
    return json.dumps(target, indent=1).replace('"narrower": null', narrower) + "\n"


def targets() -> dict[Path, str]:
    """Return both files."""
    ours = kernels()
    return {TARGETS / "etx.json": ours, TARGETS / "executorch.json": executorch(ours)}


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, targets()))
