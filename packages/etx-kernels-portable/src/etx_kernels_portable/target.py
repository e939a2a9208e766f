# SPDX-License-Identifier: BSD-3-Clause
"""Compare ``etx.json``, the target that lists the operators of the plugin, with the plugin.

``python -m etx_kernels_portable.target [--plugin PATH] [--target PATH]``
"""

from __future__ import annotations

import argparse
import ctypes as c
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from etx_schema.dtypes import DTYPES

from etx_kernels_portable import library_path, target_path
from etx_kernels_portable._tables import rows

EVERY_DTYPE = (1 << 30) - 1
IN_PLACE = 1 << 63


def kernels(plugin: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the bits (`etx_kernel::dtypes`) of each kernel in the library `plugin`."""
    for row in rows(c.CDLL(plugin)):
        yield row.name.decode(), row.dtypes


def describe(bits: int) -> dict[str, Any]:
    """Return an operator's entry: no list when every dtype is taken or none is stated."""
    row: dict[str, Any] = {"in_place": True} if bits & IN_PLACE else {}
    dtypes = bits & EVERY_DTYPE
    if dtypes in (0, EVERY_DTYPE):
        return row
    return {**row, "dtypes": [name for bit, (name, _) in DTYPES.items() if dtypes >> bit & 1]}


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 when the target and the plugin differ."""
    parser = argparse.ArgumentParser(prog="python -m etx_kernels_portable.target")
    parser.add_argument("--plugin", default=library_path(), help="the shared library to read")
    parser.add_argument("--target", default=target_path(), help="the JSON file")
    options = parser.parse_args(argv)
    have = set(json.loads(Path(options.target).read_text(encoding="utf-8"))["operators"])
    want = {name for name, _ in kernels(options.plugin)}
    if have == want:
        return 0
    differ = ", ".join(sorted(have ^ want))
    print(
        f"{options.target} does not list the kernels of {options.plugin}: {differ}", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
