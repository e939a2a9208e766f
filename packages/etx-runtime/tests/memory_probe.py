# SPDX-License-Identifier: BSD-3-Clause
"""Load a program and run it; print as JSON what each step made resident.

usage: memory_probe.py HOW PLUGIN PROGRAM [DATA]

HOW is how the file with the weights is given: path, file, mapping, bytes, memoryview, bytearray,
stream. Kilobytes; `file` is what the mapping of that file holds.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

SOURCES: dict[str, Any] = {
    "path": Path,
    "file": lambda path: path.open("rb"),
    "mapping": lambda path: mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_READ),
    "bytes": lambda path: path.read_bytes(),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "stream": lambda path: io.BytesIO(path.read_bytes()),
}


def sizes(lines: list[str]) -> dict[str, int]:
    """Return the kilobytes that lines of smaps name."""
    pairs = (line.split()[:2] for line in lines if line.endswith("kB"))
    return {name.rstrip(":"): int(size) for name, size in pairs}


def resident() -> dict[str, int]:
    """Return what this process holds."""
    return sizes(Path("/proc/self/smaps_rollup").read_text().splitlines())


def mapped(path: Path) -> dict[str, int]:
    """Return the sums over the mappings of a file."""
    total: dict[str, int] = {"Rss": 0, "Private_Dirty": 0, "Anonymous": 0}
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            inside = line.endswith(str(path))
        for name, size in sizes([line]).items():
            if inside and name in total:
                total[name] += size
    return total


def main(how: str, plugin: str, program: Path, data: Path | None) -> None:
    weights = data or program
    source = SOURCES[how](weights)
    x = np.ones((1024, 1024), np.float32)
    before = resident()
    import etx_runtime

    steps = {"import": resident()}
    runtime = etx_runtime.Runtime.get()
    runtime.load_plugin(plugin)
    sources = (program, [source]) if data else (source, [])
    method = runtime.load_program(sources[0], data_paths=sources[1]).load_method("forward")
    if how == "file":
        source.close()
    steps["load"] = resident()
    file = {"load": mapped(weights)}
    (y,) = method.execute([x], borrow=True)
    assert float(y[0, 0]) == float(y[-1, -1]) == 137.0
    steps["run"] = resident()
    file["run"] = mapped(weights)
    grown = {step: {k: after[k] - before[k] for k in after} for step, after in steps.items()}
    print(json.dumps({**grown, "file": file, "used": method.memory_bytes()}))


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0], words[1], Path(words[2]), Path(words[3]) if words[3:] else None)
