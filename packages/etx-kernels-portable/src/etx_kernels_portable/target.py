# SPDX-License-Identifier: BSD-3-Clause
"""Write ``etx.json``, the target that lists the operators of the plugin, or check it.

``python -m etx_kernels_portable.target [--check] [--plugin PATH] [--output PATH]``
"""

from __future__ import annotations

import argparse
import ctypes as c
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etx_kernels_portable import __version__, library_path, target_path
from etx_kernels_portable._tables import rows

DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
EVERY_DTYPE = (1 << 30) - 1
MAX_RANK = 16


def kernels(plugin: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the dtype bits of each kernel in the shared library `plugin`."""
    for row in rows(c.CDLL(plugin)):
        yield row.name.decode(), row.dtypes


def describe(dtypes: int) -> dict[str, list[str]]:
    """Return an operator's entry: no list when every dtype is taken or none is stated."""
    if dtypes in (0, EVERY_DTYPE):
        return {}
    return {"dtypes": [name for bit, name in DTYPES.items() if dtypes >> bit & 1]}


def make_target(plugin: str) -> dict[str, Any]:
    """Return the target document for a plugin."""
    return {
        "name": "etx",
        "description": "etx-runtime with etx-kernels-portable",
        "version": __version__,
        "runtime": {"min_version": __version__},
        "operators": {name: describe(dtypes) for name, dtypes in sorted(kernels(plugin))},
        "backends": [],
        "limits": {"max_rank": MAX_RANK},
    }


def render(target: dict[str, Any]) -> str:
    """Return the JSON text, one operator a line."""
    head = {**target, "operators": None}
    text = json.dumps(head, indent=1, ensure_ascii=False)
    rows = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in target["operators"].items()
    )
    return text.replace('"operators": null', f'"operators": {{\n{rows}\n }}') + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 when --check finds a difference."""
    parser = argparse.ArgumentParser(prog="python -m etx_kernels_portable.target")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--plugin", default=library_path(), help="the shared library to read")
    parser.add_argument("--output", default=target_path(), help="the JSON file")
    options = parser.parse_args(argv)
    text = render(make_target(options.plugin))
    output = Path(options.output)
    if not options.check:
        output.write_text(text, encoding="utf-8")
        return 0
    if output.is_file() and output.read_text(encoding="utf-8") == text:
        return 0
    print(
        f"{output} does not list the kernels of {options.plugin}; "
        "write it with python -m etx_kernels_portable.target",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
