# SPDX-License-Identifier: BSD-3-Clause
"""Load and call one model with ETX; print as JSON the kilobytes that it made resident.

usage: resident.py FILE CALLS.npz CALLS.json

`grown` is what the process holds above Python, NumPy and the inputs; `file` is what the file's
mapping holds of it; `planned` and `scratch` are the method's own account.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def resident(name: str, path: str = "") -> int:
    """Return the sum of a field over the mappings, or over those of one file."""
    total, inside = 0, not path
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            inside = line.endswith(path)
        elif inside and words[0] == name + ":":
            total += int(words[1])
    return total


def main(file: str, arrays: str, sizes: str) -> None:
    call = json.loads(Path(sizes).read_text())
    with np.load(arrays) as stored:
        inputs = [stored[f"call{len(call) - 1}_input{i}"] for i in range(call[-1][0])]
    resident("Rss")
    before = resident("Rss")
    import etx_runtime

    method = etx_runtime.Runtime.get().load_program(file).load_method("forward")
    method.execute(inputs, borrow=True)
    grown = resident("Rss") - before
    used = method.memory_bytes()
    result = {"grown": grown, "file": resident("Rss", file), "dirty": resident("Anonymous", file)}
    own = {"planned": used["planned"] // 1024, "scratch": used["temp"] // 1024}
    print(json.dumps({**result, **own}))


if __name__ == "__main__":
    main(*sys.argv[1:])
