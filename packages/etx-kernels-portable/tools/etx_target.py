#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write src/etx_kernels_portable/etx.json: what each kernel of the installed plugin takes.

Every kernel is called with every dtype of each argument that ATen allows, or that a quantized one
might take. Needs torch and etx-exir. With --check, nothing is written: exit 1 if it is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from generated import write_or_check

PACKAGE = Path(__file__).parent.parent
OUTPUT = PACKAGE / "src" / "etx_kernels_portable" / "etx.json"
MAX_RANK = 16
ALIKE = {  # operators of the format, whose kernels are those of ATen's
    "dim_order_ops::_clone_dim_order.out": ("aten::clone.out", "non_blocking", "dim_order"),
    "dim_order_ops::_to_dim_order_copy.out": ("aten::_to_copy.out", "non_blocking", "dim_order"),
    "et_copy::_d2h_copy.out": ("aten::clone.out",),
    "et_copy::_h2d_copy.out": ("aten::clone.out",),
}


def document() -> str:
    """Return the target as JSON, one operator a line."""
    sys.path[:0] = [str(PACKAGE / "tests"), str(PACKAGE / "tests" / "support")]
    from dtypes import rows_of_kernels
    from etx_kernels_portable import __version__, library_path
    from etx_kernels_portable.target import describe, kernels
    from quantized_calls import quantized_rows

    stated = {name: describe(bits) for name, bits in kernels(library_path())}
    rows: dict[str, Any] = stated | rows_of_kernels() | quantized_rows()
    for name, (other, *between) in ALIKE.items():
        row = rows[other]["arguments"]
        middle = dict.fromkeys(between, "")
        rows[name] = {"arguments": {"self": row["self"], **middle, "out": row["out"]}}
    for name, row in rows.items():
        if stated[name].get("in_place"):
            rows[name] = {"in_place": True, **row}
    head = {
        "name": "etx",
        "description": "etx-runtime with etx-kernels-portable",
        "version": __version__,
        "runtime": {"min_version": __version__},
        "operators": None,
        "backends": [],
        "limits": {"max_rank": MAX_RANK},
    }
    compact = json.JSONEncoder(separators=(",", ":")).encode  # a device has the file, twice
    lines = [f"  {json.dumps(name)}: {compact(row)}" for name, row in sorted(rows.items())]
    operators = '"operators": {\n' + ",\n".join(lines) + "\n }"
    return json.dumps(head, indent=1).replace('"operators": null', operators) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, {OUTPUT: document()}))
